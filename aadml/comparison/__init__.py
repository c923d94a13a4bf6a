"""Types shared by all packages, rules of relevance, and comparisons of anchors with candidates for losses."""

from typing import TYPE_CHECKING

from aadml.feature_extraction.ground.import_paths import imported_on_demand

if TYPE_CHECKING:
    from aadml.comparison.comparison import Comparison, Terms

__all__ = ["Comparison", "Terms"]

__getattr__ = imported_on_demand(__name__, dict.fromkeys(__all__, "comparison"))
