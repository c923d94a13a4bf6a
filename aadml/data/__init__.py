"""Data: readers of what the field has on disk, data sets, splits, synthetic features and rendered sample clips."""
