"""Inspection of feature files, for `aadml inspect`."""
