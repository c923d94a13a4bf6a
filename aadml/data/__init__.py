"""Data: manifests of media, splits, synthetic features, sample clips, and readers of published file layouts."""
