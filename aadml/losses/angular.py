"""Angular loss (Wang et al., Deep metric learning with angular loss, ICCV 2017)."""

import math
from typing import Annotated

import torch
from annotated_types import Interval, Unit
from torch import Tensor

from aadml.comparison import Comparison, Terms, pairwise
from aadml.comparison.options import Fidelity
from aadml.comparison.pairwise import counted
from aadml.losses.kernels.likelihood import softplus

MANY = 8
"""Minimum mean number of anchors per group. For smaller groups, one product of all anchors is faster."""
STEEPEST = 70.0
"""Largest angle in degrees that lets the exponentials of unit vectors, at most exp(8 tan^2(alpha)), fit float32."""
Angle = Annotated[float, Interval(gt=0, le=STEEPEST), Unit("degrees")]


def angular(comparison: Comparison, *, alpha: Angle = 45.0, fidelity: Fidelity = "repaired") -> Terms:
    """Compute the loss that bounds the negative's angle in triangles of anchor, positive and negative (N-pair form).

        total_i = sum over p in P_i of  log(1 + sum over n in N_i of exp(f_ipn))
        f_ipn = 4 t^2 (x_i + r_p) . r_n - 2 (1 + t^2) x_i . r_p

    with t = tan(alpha) and all vectors normalized to length 1. The inner sum over n is one entry of a matrix product,
    exp(4 t^2 x_i . r_n) times exp(4 t^2 r_p . r_n), so triplets are never stored. Memory is O(a c + c^2). Only entries
    of positive pairs are computed, class by class: O(a c^2 / C) time for C classes of equal size. The time is cubic:
    f depends on x_i + r_p, which differs for every pair. The sum of exponentials over negatives has no shorter exact
    form.

    Args:
        comparison: a anchors against c candidates.
        alpha: the angle in degrees (45: Wang et al.; pytorch-metric-learning uses 40).
        fidelity: "repaired", or "source" to keep the length of r_n where r_n is a negative, as pytorch-metric-learning
            does. The paper normalizes all vectors to length 1; with "source", long vectors overflow.

    Returns:
        One term per positive pair; no terms for anchors without positives or without negatives.

    Raises:
        InputError: the comparison has relevance scores instead of vectors.

    Example:
        >>> comparison = Comparison.of_labels(audio, visual, labels, labels)
        >>> terms = angular(comparison, alpha=45.0)
        >>> loss = terms.total.sum() / terms.possible.sum().clamp_min(1)
        >>> loss.backward()
        >>> optimizer.step()
        >>> optimizer.zero_grad()
    """
    gradient = math.tan(math.radians(alpha)) ** 2
    _, candidates = comparison.vectors("angular")
    pairs = comparison.positives & comparison.negatives.any(1, keepdim=True)
    if fidelity == "source":
        lengths = torch.linalg.vector_norm(candidates, dim=1)
    else:
        lengths = candidates.new_ones(len(candidates))
    to_anchor = (4 * gradient * lengths * comparison.cosine).exp().masked_fill(~comparison.negatives, 0)  # (a, c)
    to_positive = (4 * gradient * lengths * pairwise.cosine(candidates, candidates)).exp()  # (c, c)
    total = comparison.cosine.new_zeros(len(pairs))
    active = torch.zeros_like(total, dtype=torch.int64)
    for rows, columns in _groups(pairs):
        chosen = pairs[rows][:, columns]
        crowd = torch.where(chosen, pairwise.dot(to_anchor[rows], to_positive[columns]), 1)
        cost = softplus(crowd.log() - 2 * (1 + gradient) * comparison.cosine[rows][:, columns]) * chosen
        total = total.index_add(0, rows, cost.sum(1))
        active = active.index_add(0, rows, (cost > 0).sum(1))
    return Terms(total, active, counted(pairs))


def _groups(pairs: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Group anchors by their first positive, which identifies the class; return rows and all positives per group."""
    anchors, candidates = (torch.arange(count, device=pairs.device) for count in pairs.shape)
    if not pairs.numel():
        return [(anchors, candidates)]
    kind = pairs.byte().argmax(1)
    members = torch.zeros(len(candidates), len(candidates), dtype=torch.int32, device=pairs.device)
    members = members.index_add_(0, kind, pairs.int()) > 0
    sizes = torch.stack([torch.zeros_like(candidates).index_add_(0, kind, torch.ones_like(kind)), members.sum(1)])
    heights, widths = sizes.tolist()  # the only transfer from a GPU
    if (len(heights) - heights.count(0)) * MANY > len(pairs):
        return [(anchors, candidates)]
    columns = torch.nonzero_static(members, size=sum(widths))[:, 1]
    pieces = zip(kind.argsort().split(heights), columns.split(widths), strict=True)
    return [(rows, places) for rows, places in pieces if len(rows)]
