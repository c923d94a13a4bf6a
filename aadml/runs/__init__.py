"""Runs: training of a config into a folder, and evaluation, embedding and audit of the result."""
