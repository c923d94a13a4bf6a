"""Semi-hard negatives: farther than the positive (FaceNet), or closest to the positive in score (Xie et al.).

Reference: Schroff et al., FaceNet: a unified embedding for face recognition and clustering, CVPR 2015, https://doi.org/10.1109/CVPR.2015.7298682
Reference: Xie et al., On negative sampling for contrastive audio-text retrieval, ICASSP 2023, https://doi.org/10.1109/ICASSP49357.2023.10095319
"""

from typing import Literal

import torch

from aadml.comparison import Comparison
from aadml.comparison.options import Margin
from aadml.comparison.row_choice import drawn, lowest, own_positives, value_at
from aadml.comparison.scores import Score, dissimilarity
from aadml.feature_extraction.ground.options import removing


@removing(positive="random")
def semi_hard(
    comparison: Comparison,
    generator: torch.Generator,
    *,
    score: Score = "squared-euclidean",
    margin: Margin = 0.0,
    keep: Literal["nearest", "all"] = "nearest",
) -> Comparison:
    """Select a random positive per anchor, and one or all of the farther negatives (Schroff et al., CVPR 2015).

    A negative is farther if its distance d_an to the anchor is larger than the distance d_ap of the positive. An
    anchor without farther negatives has no terms, as in FaceNet.

    Args:
        comparison: a anchors against c candidates.
        generator: generator that draws the positives.
        score: measure of nearness, a key of SCORES.
        margin: largest excess of d_an over d_ap; 0: no limit.
        keep: keep the "nearest" of the farther negatives, or "all" of them.

    Raises:
        InputError: `score` is unknown, or is a distance for a comparison with relevance scores instead of vectors.
    """
    distance = dissimilarity(comparison, score).detach()
    positives = drawn(comparison.positives, generator)
    reference = value_at(distance, positives)
    negatives = comparison.negatives & (distance > reference)
    if margin > 0:
        negatives = negatives & (distance < reference + margin)
    return comparison.narrow(positives, lowest(distance, negatives) if keep == "nearest" else negatives)


@removing(positive="own")
def semi_hard_two_sided(comparison: Comparison, generator: torch.Generator, *, score: Score = "cosine") -> Comparison:
    """Select each anchor's partner, and the negative whose score is closest to the partner's: argmin_j |S_ij - S_ii|.

    The selection is the cross-modality semi-hard strategy of Xie et al. (ICASSP 2023). An anchor whose partner is not a
    positive has no pairs.

    Args:
        comparison: a anchors against c candidates.
        generator: not used.
        score: measure of nearness, a key of SCORES.

    Raises:
        InputError: `score` is unknown, or is a distance for a comparison with relevance scores instead of vectors.
    """
    distance = dissimilarity(comparison, score).detach()
    positives = own_positives(comparison)
    apart = (distance - value_at(distance, positives)).abs()
    negatives = comparison.negatives & positives.any(1, keepdim=True)
    return comparison.narrow(positives, lowest(apart, negatives))
