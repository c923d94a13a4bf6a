"""Baselines without training: random vectors, and pretrained towers without further training."""
