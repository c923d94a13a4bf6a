"""Layers of the networks of methods and losses."""
