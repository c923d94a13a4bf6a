"""Extraction jobs: from a manifest to a feature file, in shards, resumable."""
