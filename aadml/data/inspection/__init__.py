"""Inspection of feature files and of the data of retrieval tasks."""
