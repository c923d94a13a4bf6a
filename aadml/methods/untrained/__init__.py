"""Baselines without training: random vectors, and pretrained towers compared as they are."""
