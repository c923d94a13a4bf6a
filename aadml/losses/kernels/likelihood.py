"""Negative log-likelihoods of positives among rivals, in two forms for several positives per anchor."""

from typing import TypeVar

import torch
from torch import Tensor
from torch.nn import functional as F

from aadml.feature_extraction.ground.errors import InputError
from aadml.losses.kernels.row_blocks import LOWEST, Costs, counted, exp_of_falls, without

T = TypeVar("T", float, Tensor)
NOTHING = 1e-30
"""A share too small to change any sum."""


def of_each_positive(
    logits: Tensor, positives: Tensor, negatives: Tensor | None, shares: Tensor | None = None
) -> Costs:
    """Compute the cross-entropy of each positive against only the negatives, without the other positives of the anchor.

        total_i = sum over p in P_i of  u_ip log(1 + sum over n in N_i of exp(s_in - s_ip))
        gradient_ip = -h_ip,   gradient_in = softmax over N_i of (s_in) at n  times  sum over p of h_ip,
        h_ip = u_ip / (1 + exp(s_ip - log sum over n of exp(s_in)))

    Args:
        logits: s (a, c); `total` is also differentiable by autograd, so small matrices do not need `summed`.
        positives: (a, c) zeros and ones.
        negatives: (a, c) zeros and ones, disjoint from `positives`; None: all entries that are not positives.
        shares: (a, c) shares of the positives; u is a share divided by the mean share of its anchor. None: u = 1.

    Returns:
        One term per positive, for anchors that have negatives; no terms for other anchors.
    """
    outside = positives if negatives is None else 1 - negatives
    parts, mass, rivals = _exponentials(logits, outside)
    weights = positives if shares is None else _targets(positives, shares) * positives.sum(1, keepdim=True)
    gap = rivals - logits  # without negatives, far enough below 0 to vanish
    cost = F.threshold(softplus(gap.clamp_min(LOWEST)) * weights, NOTHING, 0.0)
    here = torch.sigmoid(gap).mul_(weights)
    gradient = scaled(parts, here.sum(1, keepdim=True) / mass).sub_(here)
    possible = positives.sum(1) * (outside.sum(1) < outside.shape[1])
    return Costs(cost.sum(1), counted(cost), possible, gradient)


def mean_over_positives(
    logits: Tensor, positives: Tensor, rivals: Tensor | None, shares: Tensor | None = None
) -> Costs:
    """Compute the negative mean log-probability of the positives among all `rivals`, which include the positives.

        total_i = -1/|P_i| sum over p in P_i of  log( exp(s_ip) / sum over j in rivals_i of exp(s_ij) )
        gradient_ij = softmax over rivals_i of (s_ij) at j  minus  1/|P_i| where j is in P_i

    With shares the loss is the cross-entropy with soft targets: the share of a positive, normalized by anchor, replaces
    1/|P_i|.

    Args:
        logits: s (a, c).
        positives: (a, c) zeros and ones.
        rivals: (a, c) zeros and ones, a superset of `positives`; None: all entries.
        shares: (a, c) shares of the positives, not negative; None: equal shares.

    Returns:
        One term per anchor, for anchors that have positives; no terms for other anchors.
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
    """Multiply exponentials (a, c) by a factor per row; values too small to change any sum become 0.

    Denormal numbers would make products a hundred times slower.
    """
    return F.threshold(parts * factor, NOTHING, 0.0, inplace=True)


def _targets(positives: Tensor, shares: Tensor) -> Tensor:
    """Return the shares of the positives, normalized by anchor (a, c); equal shares if all are 0."""
    weights = positives * shares
    total = weights.sum(1, keepdim=True)
    weights = torch.where(total > 0, weights, positives)
    return weights / torch.where(total > 0, total, positives.sum(1, keepdim=True).clamp_min(1))


def some(mask: Tensor) -> Tensor:
    """Return 1 for each row of zeros and ones that contains a one, else 0: (r, c) -> (r,)."""
    return mask.sum(1).clamp_max(1)


def tempered(scores: Tensor, temperature: float) -> Tensor:
    """Divide scores by a temperature.

    Raises:
        InputError: the temperature is not above 0.
    """
    factor = inverse(temperature)
    return scores if factor == 1 else scores * factor


def inverse(temperature: T) -> T:
    """Return 1 / temperature.

    Raises:
        InputError: the temperature is not above 0.
    """
    if not temperature > 0:
        raise InputError(f"loss: the temperature is {temperature:g}; pass a temperature above 0")
    return temperature**-1


def softplus(values: Tensor) -> Tensor:
    """Return log(1 + exp(x)), exact to the last bit of a float64 (by default torch returns x where x > 20)."""
    return F.softplus(values, threshold=40.0)
