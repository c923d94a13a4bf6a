"""Experiments: configs, run folders, runs, ablations, comparisons, reports."""
