"""Configs: YAML files, flags and settings, checked against the options of the objects that they configure."""
