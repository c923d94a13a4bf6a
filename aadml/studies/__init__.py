"""Studies: many runs over a grid of configs, methods or losses, and their results."""
