"""Data: readers of published file layouts, data sets, splits, synthetic features and rendered sample clips."""
