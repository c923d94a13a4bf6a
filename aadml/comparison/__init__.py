"""Inputs of losses (anchors against candidates), rules of relevance, and types shared by all packages."""

from typing import TYPE_CHECKING

from aadml.feature_extraction.ground.import_paths import imported_on_demand

if TYPE_CHECKING:
    from aadml.comparison.comparison import Comparison, Terms

__all__ = ["Comparison", "Terms"]

__getattr__ = imported_on_demand(__name__, dict.fromkeys(__all__, "comparison"))
