"""Pairs of the multi-similarity loss (Wang et al., CVPR 2019, section 4.1).

Reference: Wang et al., Multi-similarity loss with general pair weighting for deep metric learning, CVPR 2019, https://arxiv.org/abs/1904.06627
"""

import torch

from aadml.comparison import Comparison
from aadml.comparison.options import Margin


def multi_similarity(comparison: Comparison, generator: torch.Generator, *, margin: Margin = 0.1) -> Comparison:
    """Select the positives and negatives that are hard relative to the anchor's other pairs, by cosine.

    A positive is selected if its cosine is less than the highest cosine of the anchor's negatives plus `margin`. A
    negative is selected if its cosine is above the lowest cosine of the anchor's positives minus `margin`. An anchor
    without positives or without negatives keeps no pairs.

    Args:
        comparison: a anchors against c candidates.
        generator: not used.
        margin: epsilon, tolerance of both bounds (0.1: Wang et al.).
    """
    cosine, positives, negatives = comparison.cosine.detach(), comparison.positives, comparison.negatives
    least_alike = cosine.masked_fill(~positives, torch.inf)
    most_alike = cosine.masked_fill(~negatives, -torch.inf)
    if not cosine.numel():
        return comparison
    return comparison.narrow(
        positives & (cosine - margin < most_alike.amax(1, keepdim=True)),
        negatives & (cosine + margin > least_alike.amin(1, keepdim=True)),
    )
