"""Extraction jobs from a manifest to a feature file; jobs can be resumed and split into shards."""
