"""Splits of clips into train, valid and test, and duplicates across splits."""
