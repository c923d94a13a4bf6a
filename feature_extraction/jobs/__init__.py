"""Extraction jobs: resumable, in shards, from a manifest to a feature file."""
