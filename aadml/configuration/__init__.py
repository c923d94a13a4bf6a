"""Configs: YAML files, flags and settings, checked against the options of what they configure."""
