"""Comparisons: anchors against candidates, the one thing a loss sees, and the types that travel through the toolkit."""

from aadml.comparison.comparison import Comparison, Terms

__all__ = ["Comparison", "Terms"]
