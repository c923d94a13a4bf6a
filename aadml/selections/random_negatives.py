"""Random positives and negatives."""

import torch

from aadml.comparison import Comparison
from aadml.comparison.row_choice import drawn
from aadml.feature_extraction.ground.options import removing


@removing(positive="random")
def random_negative(comparison: Comparison, generator: torch.Generator) -> Comparison:
    """Select one positive and one negative per anchor, uniformly at random.

    If each anchor has one positive, the selection is the random strategy of Xie et al. (ICASSP 2023).

    Reference: Xie et al., On negative sampling for contrastive audio-text retrieval, ICASSP 2023, https://doi.org/10.1109/ICASSP49357.2023.10095319

    Args:
        comparison: a anchors against c candidates.
        generator: generator of the draws.
    """
    positives = drawn(comparison.positives, generator)
    return comparison.narrow(positives, drawn(comparison.negatives, generator))
