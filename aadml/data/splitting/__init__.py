"""Splits of clips: division into train, valid and test, subsets, folds, and duplicates across splits."""
