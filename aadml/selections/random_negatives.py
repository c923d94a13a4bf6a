"""Random negatives."""

from typing import Literal

import torch

from aadml.comparison import Comparison
from aadml.comparison.row_choice import chosen_positives, drawn


def random_negative(
    comparison: Comparison, generator: torch.Generator, *, positive: Literal["all", "random", "own"] = "random"
) -> Comparison:
    """Select one negative per anchor, uniformly at random, and independently in each direction.

    If each anchor has one positive, this is the random strategy of Xie et al. (ICASSP 2023).

    Args:
        comparison: a anchors against c candidates.
        generator: generator of the draws.
        positive: "random" (one drawn at random), "own" or "all".
    """
    positives = chosen_positives(comparison, positive, generator)
    return comparison.narrow(positives, drawn(comparison.negatives, generator))
