"""Negative log-likelihoods of positives among rivals: the two ways softmax losses deal with many positives."""

from typing import TypeVar

import torch
from torch import Tensor
from torch.nn import functional as F

from aadml.feature_extraction.ground.errors import InputError
from aadml.losses.kernels.row_blocks import LOWEST, Costs, counted, exp_of_falls, without

T = TypeVar("T", float, Tensor)
NOTHING = 1e-30
"""A share that changes no sum."""


def of_each_positive(
    logits: Tensor, positives: Tensor, negatives: Tensor | None, shares: Tensor | None = None
) -> Costs:
    """Cross-entropy of each positive against the negatives alone, without the other positives of the anchor.

        total_i = sum over p in P_i of  u_ip log(1 + sum over n in N_i of exp(s_in - s_ip))
        slope_ip = -h_ip,   slope_in = softmax over N_i of (s_in) at n  times  sum over p of h_ip,
        h_ip = u_ip / (1 + exp(s_ip - log sum over n of exp(s_in)))

    Args:
        logits: s (a, c); `total` is differentiable by them too, so that small matrices need no engine.
        positives: (a, c) zeros and ones.
        negatives: (a, c) zeros and ones, disjoint from `positives`; None: all that are not positives.
        shares: (a, c) of the positives; u is such a share over the mean share of its anchor. None: u = 1.

    Returns:
        One term a positive, for anchors that have negatives; nothing for the others.
    """
    outside = positives if negatives is None else 1 - negatives
    parts, mass, rivals = _exponentials(logits, outside)
    weights = positives if shares is None else _targets(positives, shares) * positives.sum(1, keepdim=True)
    gap = rivals - logits  # without negatives so far below 0 that nothing is left
    cost = F.threshold(softplus(gap.clamp_min(LOWEST)) * weights, NOTHING, 0.0)
    here = torch.sigmoid(gap).mul_(weights)
    slope = scaled(parts, here.sum(1, keepdim=True) / mass).sub_(here)
    possible = positives.sum(1) * (outside.sum(1) < outside.shape[1])
    return Costs(cost.sum(1), counted(cost), possible, slope)


def mean_over_positives(
    logits: Tensor, positives: Tensor, rivals: Tensor | None, shares: Tensor | None = None
) -> Costs:
    """Mean over positives of their log-probability among all `rivals`, the positives included.

        total_i = -1/|P_i| sum over p in P_i of  log( exp(s_ip) / sum over j in rivals_i of exp(s_ij) )
        slope_ij = softmax over rivals_i of (s_ij) at j  minus  1/|P_i| where j is in P_i

    With shares it is the cross-entropy with soft targets: a positive's share of all its anchor's takes the place of
    1/|P_i|.

    Args:
        logits: s (a, c).
        positives: (a, c) zeros and ones.
        rivals: (a, c) zeros and ones, a superset of `positives`; None: everyone.
        shares: (a, c) of the positives, not negative; None takes all alike.

    Returns:
        One term an anchor, for anchors that have positives; nothing for the others.
    """
    count = positives.sum(1)
    possible = count.clamp_max(1)
    parts, mass, everyone = _exponentials(logits, None if rivals is None else 1 - rivals)
    share = scaled(parts, possible[:, None] / mass)
    if shares is not None:
        targets = _targets(positives, shares)
        total = (everyone[:, 0] * possible - (logits * targets).sum(1)).clamp_min_(0)
        return Costs(total, total > 0, possible, share.sub_(targets))
    part = possible / count.clamp_min(1)
    mean = (logits * positives).sum(1) * part
    total = (everyone[:, 0] * possible - mean).clamp_min_(0)
    return Costs(total, total > 0, possible, share.addcmul_(positives, -part[:, None]))


def _exponentials(logits: Tensor, outside: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Return the exponentials of logits minus their row maximum (a, c), their sums, and the logs of the sums (a, 1).

    Entries that `outside` (a, c) marks with ones are ignored; None marks none.
    """
    if not logits.shape[1]:
        return torch.zeros_like(logits), logits.new_ones(len(logits), 1), logits.new_zeros(len(logits), 1)
    inside = logits if outside is None else without(logits, outside)
    peak = inside.amax(1, keepdim=True)
    parts = exp_of_falls(inside - peak)
    mass = parts.sum(1, keepdim=True)
    return parts, mass, peak + mass.log()


def scaled(parts: Tensor, factor: Tensor) -> Tensor:
    """Multiply exponentials (a, c) by a factor per row; values below any rounding become 0.

    Denormal numbers would slow down products a hundred times.
    """
    return F.threshold(parts * factor, NOTHING, 0.0, inplace=True)


def _targets(positives: Tensor, shares: Tensor) -> Tensor:
    """Return the shares of the positives, normalized by anchor (a, c); equal shares where all are 0."""
    weights = positives * shares
    total = weights.sum(1, keepdim=True)
    weights = torch.where(total > 0, weights, positives)
    return weights / torch.where(total > 0, total, positives.sum(1, keepdim=True).clamp_min(1))


def some(mask: Tensor) -> Tensor:
    """Return (r,): 1 for rows of zeros and ones that hold a one, else 0."""
    return mask.sum(1).clamp_max(1)


def tempered(scores: Tensor, temperature: float) -> Tensor:
    """Divide scores by a temperature.

    Raises:
        InputError: a temperature that is not above 0.
    """
    factor = inverse(temperature)
    return scores if factor == 1 else scores * factor


def inverse(temperature: T) -> T:
    """Return 1 / temperature.

    Raises:
        InputError: a temperature that is not above 0.
    """
    if not temperature > 0:
        raise InputError(f"loss: a temperature must be above 0, not {temperature:g}")
    return temperature**-1


def softplus(values: Tensor) -> Tensor:
    """log(1 + exp(x)), exact to the last bit of a float64 (torch's own becomes the identity at 20 already)."""
    return F.softplus(values, threshold=40.0)
