"""Pairs of the multi-similarity loss (Wang et al., CVPR 2019, section 4.1)."""

import torch

from aadml.comparison import Comparison
from aadml.comparison.options import Margin


def multi_similarity(comparison: Comparison, generator: torch.Generator, *, margin: Margin = 0.1) -> Comparison:
    """Select positives below the anchor's most similar negative, and negatives above its least similar positive.

    Similarity is the cosine. An anchor without positives or without negatives keeps no pairs.

    Args:
        comparison: a anchors against c candidates.
        generator: not used.
        margin: epsilon, tolerance of both bounds (0.1: the paper).
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
