"""SCORES: how far a candidate is from an anchor, by the name of the score; smaller is nearer under every one."""

from collections.abc import Callable
from typing import Annotated

from torch import Tensor

from aadml.comparison import Comparison
from aadml.feature_extraction.ground.option_types import Choice
from aadml.feature_extraction.ground.registry import lookup

SCORES: dict[str, Callable[[Comparison], Tensor]] = {
    "squared-euclidean": lambda comparison: comparison.squared_distance,
    "euclidean": lambda comparison: comparison.distance,
    "cosine": lambda comparison: -comparison.cosine,
    "dot": lambda comparison: -comparison.dot,
}
"""A similarity enters with a minus sign, so that `far_ap - far_an + margin` is the hinge of distances and of
similarities alike. Where a comparison carries a relevance (frame/word scores), that is its cosine and its dot."""

Score = Annotated[str, Choice(SCORES)]
"""What nearness is measured in."""


def dissimilarity(comparison: Comparison, score: Score) -> Tensor:
    """Return how far every candidate is from every anchor (a, c), differentiable.

    Raises:
        InputError: no such score, or a distance of a comparison that carries a relevance instead of vectors.
    """
    return lookup(SCORES, score, "score")(comparison)
