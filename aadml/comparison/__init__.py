"""Comparisons: anchors against candidates, the one thing a loss sees, and the types that travel through the toolkit."""

from aadml.feature_extraction.ground.import_paths import imported_on_demand

__all__ = ["Comparison", "Terms"]

__getattr__ = imported_on_demand(__name__, dict.fromkeys(__all__, "comparison"))
