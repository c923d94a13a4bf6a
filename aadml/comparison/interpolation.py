"""Synthetic candidates on lines between embeddings (Ko and Gu, CVPR 2020).

Reference: Ko and Gu, Embedding expansion: augmentation in embedding space for deep metric learning, CVPR 2020, https://arxiv.org/abs/2003.02546
"""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from aadml.comparison import Comparison
from aadml.comparison.row_choice import drawn, lowest

BOTH = ("same-class", "anchor-negative")


def interpolated(
    comparison: Comparison, generator: torch.Generator, *, shares: Sequence[float], lines: Sequence[str] = BOTH
) -> Comparison:
    """Add synthetic candidates on lines between two embeddings; gradients flow into both ends of a line.

        same-class:       s y_i + (1 - s) y_j;  y_i: each candidate, y_j: a random other candidate of its class
        anchor-negative:  s x_i + (1 - s) y_n;  x_i: each anchor, y_n: the nearest negative of the anchor

    A point on a same-class line is a positive of an anchor if both ends are positives. The point is a negative if
    both ends are negatives. A point on an anchor-negative line is a negative of only the anchor x_i. The point is
    (1 - s) times as far from x_i as y_n.

    Distance is convex, so the farthest positive on a same-class line is always an end. The nearest negative on a
    line may be between the ends.

    Args:
        comparison: `a` anchors against `c` candidates; same-class lines need `candidate_class`.
        generator: generator of random numbers for the choice of y_j.
        shares: values of s, each in 0..1.
        lines: kinds of lines: "same-class", "anchor-negative" or both.

    Returns:
        Comparison with the c candidates first, unchanged. Each share adds points (c, d) on same-class lines, then
        points (a, d) on anchor-negative lines. In the result, `guides` is empty, and `within`,
        `candidate_features`, `candidate_head` and `candidate_class` are None.

    Raises:
        InputError: the comparison has relevance scores instead of vectors, or lacks classes for same-class lines.
    """
    anchors, candidates = comparison.vectors("interpolation", "choose another proxy")
    points, positives, negatives = [candidates], [comparison.positives], [comparison.negatives]
    for share in shares:
        if "same-class" in lines:
            other = _other_of_the_class(comparison, generator)
            points.append(share * candidates + (1 - share) * candidates[other])
            # an anchor that ignores a candidate (such as the anchor itself) also ignores the points of the candidate
            positives.append(comparison.positives & comparison.positives[:, other])
            negatives.append(comparison.negatives & comparison.negatives[:, other])
        if "anchor-negative" in lines:
            nearest = lowest(comparison.squared_distance, comparison.negatives)
            points.append(share * anchors + (1 - share) * candidates[nearest.int().argmax(1)])
            itself = torch.eye(len(anchors), dtype=torch.bool, device=anchors.device)
            positives.append(torch.zeros_like(itself))
            negatives.append(itself & nearest.any(1, keepdim=True))
    return replace(
        comparison,
        candidates=torch.cat(points),
        positives=torch.cat(positives, 1),
        negatives=torch.cat(negatives, 1),
        guides={},
        within=None,
        candidate_features=None,
        candidate_head=None,
        candidate_class=None,
    )


def _other_of_the_class(comparison: Comparison, generator: torch.Generator) -> Tensor:
    """Draw for each candidate another candidate of its class, and return the indices (c,) of the drawn candidates.

    A candidate that is alone in its class keeps its own index.
    """
    classes = comparison.need("candidate_class", "interpolation")
    itself = torch.eye(len(classes), dtype=torch.bool, device=classes.device)
    others = (classes[:, None] == classes[None, :]) & ~itself
    return torch.where(others.any(1, keepdim=True), drawn(others, generator), itself).int().argmax(1)
