"""Data: readers of published file layouts, manifests of media, splits, synthetic features and sample clips."""
