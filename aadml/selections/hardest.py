"""The hardest: each anchor's nearest negative (VSE++, Faghri et al., BMVC 2018), and batch-hard triplets."""

import torch

from aadml.comparison import Comparison
from aadml.comparison.row_choice import Positive, chosen_positives, lowest
from aadml.comparison.scores import Score, dissimilarity


def hardest(
    comparison: Comparison,
    generator: torch.Generator,
    *,
    score: Score = "squared-euclidean",
    positive: Positive = "random",
) -> Comparison:
    """Select each anchor's nearest negative, against one positive or all.

    The "single triplet with the hardest negative" of the AADML paper, read per anchor; XIE's cross-modality hard
    strategy (Xie et al., ICASSP 2023) under a similarity.

    Args:
        comparison: a anchors against c candidates.
        generator: draws the positive.
        score: what nearness is measured in; a key of SCORES.
        positive: "random" (one at random), "own", "hardest", "easiest" or "all".
    """
    distance = dissimilarity(comparison, score)
    return comparison.narrow(
        chosen_positives(comparison, positive, generator, distance), lowest(distance, comparison.negatives)
    )


def batch_hard(comparison: Comparison, generator: torch.Generator, *, score: Score = "squared-euclidean") -> Comparison:
    """Select each anchor's farthest positive and nearest negative (Hermans, Beyer and Leibe, 2017).

    Args:
        comparison: a anchors against c candidates.
        generator: not used.
        score: what nearness is measured in; a key of SCORES.
    """
    return hardest(comparison, generator, score=score, positive="hardest")
