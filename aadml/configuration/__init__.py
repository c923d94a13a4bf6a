"""Configs: values from YAML files, flags and settings, checked against the options of the configured objects."""
