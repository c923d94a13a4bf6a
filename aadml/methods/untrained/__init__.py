"""Baselines without training: random vectors, and features of pretrained towers."""
