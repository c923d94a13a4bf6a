"""SCORES, by name: dissimilarities of anchors and candidates; a smaller dissimilarity means a nearer candidate."""

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
"""Similarities are negated, so that `far_ap - far_an + margin` is the hinge of both distances and similarities. The
relevance of a comparison (frame/word scores), if any, replaces its cosine and its dot product."""

Score = Annotated[str, Choice(SCORES)]
"""Name of a dissimilarity."""


def dissimilarity(comparison: Comparison, score: Score) -> Tensor:
    """Return the differentiable dissimilarity (a, c) of every anchor and every candidate.

    Raises:
        InputError: the score is unknown, or is a distance for a comparison with relevance scores instead of
            vectors.
    """
    return lookup(SCORES, score, "score")(comparison)
