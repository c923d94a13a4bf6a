"""Semi-hard negatives: FaceNet's, farther than the positive, and XIE's, nearest to the positive on either side."""

import torch

from aadml.comparison import Comparison
from aadml.comparison.row_choice import chosen_positives, lowest, value_at
from aadml.comparison.scores import far
from feature_extraction.ground.errors import InputError


def semi_hard(
    comparison: Comparison,
    generator: torch.Generator,
    *,
    score: str = "squared-euclidean",
    positive: str = "random",
    margin: float = 0.0,
    keep: str = "nearest",
) -> Comparison:
    """Keep, of one positive an anchor, the negatives farther than it: d_ap < d_an (Schroff et al., CVPR 2015).

    An anchor without such a negative costs nothing: FaceNet leaves it out.

    Args:
        comparison: a anchors against c candidates.
        generator: draws the positive.
        score: what nearness is measured in; a key of SCORES.
        positive: "random" (one by lot), "own", "hardest" or "easiest".
        margin: if positive, the negatives must also be nearer than d_ap + margin.
        keep: "nearest" such negative, or "all" of them.
    """
    if positive == "all":
        raise InputError("selection.positive: semi-hard compares negatives with one positive an anchor, not with all")
    if keep not in ("nearest", "all"):
        raise InputError(f"selection.keep: no '{keep}'; there are nearest, all")
    distance = far(comparison, score).detach()
    positives = chosen_positives(comparison, positive, generator, distance)
    reference = value_at(distance, positives)
    negatives = comparison.negatives & (distance > reference)
    if margin > 0:
        negatives = negatives & (distance < reference + margin)
    return comparison.narrow(positives, lowest(distance, negatives) if keep == "nearest" else negatives)


def semi_hard_two_sided(
    comparison: Comparison, generator: torch.Generator, *, score: str = "cosine", positive: str = "own"
) -> Comparison:
    """Keep the negative whose score is closest to the positive's, nearer or farther: argmin_j |S_ij - S_ii|.

    XIE's cross-modality semi-hard strategy (Xie et al., ICASSP 2023).

    Args:
        comparison: a anchors against c candidates.
        generator: draws the positive where it is "random".
        score: what nearness is measured in; a key of SCORES.
        positive: "own", "random", "hardest" or "easiest".
    """
    if positive == "all":
        raise InputError("selection.positive: semi-hard-two-sided needs one positive an anchor, not all")
    distance = far(comparison, score).detach()
    positives = chosen_positives(comparison, positive, generator, distance)
    apart = (distance - value_at(distance, positives)).abs()
    negatives = comparison.negatives & positives.any(1, keepdim=True)
    return comparison.narrow(positives, lowest(apart, negatives))
