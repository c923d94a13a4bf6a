"""Layers that networks of methods and of losses are built of."""
