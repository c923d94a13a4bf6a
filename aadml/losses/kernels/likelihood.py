"""Negative log-likelihoods of positives among rivals, in two forms for several positives per anchor."""

import math
from typing import TypeVar

import torch
from torch import Tensor
from torch.nn import functional as F

from aadml.feature_extraction.ground.errors import InputError
from aadml.losses.kernels.row_blocks import LOWEST, Costs, Near, counted, exp_of_falls, without

T = TypeVar("T", float, Tensor)
NOTHING = 1e-30
"""A share too small to change any sum."""
CLOSE = 50.0
"""Span of logits whose exponentials stay above NOTHING, also when divided by the sum of a hundred million."""


def of_each_positive(
    logits: Tensor, near: Near, negatives: Tensor | None, shares: Tensor | None = None, room: Tensor | None = None
) -> Costs:
    """Compute the cross-entropy of each positive against only the negatives, without the other positives of the anchor.

        total_i = sum over p in P_i of  u_ip log(1 + sum over n in N_i of exp(s_in - s_ip))
        gradient_ip = -h_ip,   gradient_in = softmax over N_i of (s_in) at n  times  sum over p of h_ip,
        h_ip = u_ip / (1 + exp(s_ip - log sum over n of exp(s_in)))

    Args:
        logits: s (a, c); `total` is also differentiable by autograd, so small matrices do not need `summed`.
        near: the positives.
        negatives: (a, c) zeros and ones, without positives; None: all entries that are not positives.
        shares: (a, c) shares of the positives; u is a share divided by the mean share of its anchor. None: u = 1.
        room: buffer (a, c) for the gradient (may be `logits`); None for a new tensor.

    Returns:
        One term per positive, for anchors that have negatives; no terms for other anchors.
    """
    count = near.weights.sum(1)
    weights = near.weights if shares is None else _targets(near, shares) * count[:, None]
    chosen, room = near.of(logits), None if near.columns is None else room
    if negatives is None:
        inside, rivaled = near.left_out(logits, room), count < logits.shape[1]
    else:
        inside, rivaled = without(logits, 1 - negatives), negatives.any(1)
    parts, mass, rivals = _exponentials(inside, room)
    gap = rivals - chosen  # without negatives, far enough below 0 to vanish
    cost = torch.threshold(softplus(gap.clamp_min(LOWEST)) * weights, NOTHING, 0.0)
    here = torch.sigmoid(gap).mul_(weights)
    gradient = near.taken(scaled(parts, here.sum(1, keepdim=True) / mass), here)
    return Costs(cost.sum(1), counted(cost), count * rivaled, gradient)


def mean_over_positives(
    logits: Tensor,
    near: Near,
    rivals: Tensor | None,
    shares: Tensor | None = None,
    room: Tensor | None = None,
    span: float = math.inf,
) -> Costs:
    """Compute the negative mean log-probability of the positives among all `rivals`, which include the positives.

        total_i = -1/|P_i| sum over p in P_i of  log( exp(s_ip) / sum over j in rivals_i of exp(s_ij) )
        gradient_ij = softmax over rivals_i of (s_ij) at j  minus  1/|P_i| where j is in P_i

    With shares the loss is the cross-entropy with soft targets: the share of a positive, normalized by anchor, replaces
    1/|P_i|.

    Args:
        logits: s (a, c).
        near: the positives.
        rivals: (a, c) zeros and ones, including the positives; None: all entries.
        shares: (a, c) shares of the positives, not negative; None: equal shares.
        room: buffer (a, c) for the gradient (may be `logits`); None for a new tensor.
        span: upper bound of the difference of two logits.

    Returns:
        One term per anchor, for anchors that have positives; no terms for other anchors.
    """
    count = near.weights.sum(1, keepdim=True)
    targets = near.weights / count.clamp_min(1) if shares is None else _targets(near, shares)
    possible, mean = count.clamp_max(1), (near.of(logits) * targets).sum(1)
    inside, span = (logits, span) if rivals is None else (without(logits, 1 - rivals), math.inf)
    parts, mass, everyone = _exponentials(inside, room, span)
    total = ((everyone * possible)[:, 0] - mean).clamp_min_(0)
    return Costs(total, total > 0, possible[:, 0], near.taken(scaled(parts, possible / mass, span), targets))


def _exponentials(inside: Tensor, room: Tensor | None, span: float = math.inf) -> tuple[Tensor, Tensor, Tensor]:
    """Compute the exponentials of logits (a, c) and the log-sum-exp of each row.

    Returns:
        Exponentials (a, c) of the logits minus the maximum of the row, the row sums (a, 1) of these exponentials,
        and the log-sum-exp (a, 1) of the logits of each row.
    """
    if not inside.shape[1]:
        return torch.zeros_like(inside), inside.new_ones(len(inside), 1), inside.new_zeros(len(inside), 1)
    peak = inside.amax(1, keepdim=True)
    parts = exp_of_falls(torch.sub(inside, peak, out=room), span)
    mass = parts.sum(1, keepdim=True)
    return parts, mass, peak + mass.log()


def scaled(parts: Tensor, factor: Tensor, span: float = math.inf) -> Tensor:
    """Multiply exponentials (a, c) by a factor per row; values too small to change any sum become 0.

    Exponentials without gradient are overwritten. Denormal numbers would make products a hundred times slower. With
    logits of a small span and shares as factors, no product is denormal.
    """
    product = parts * factor if parts.requires_grad else parts.mul_(factor)
    return product if span <= CLOSE else torch.threshold_(product, NOTHING, 0.0)


def _targets(near: Near, shares: Tensor) -> Tensor:
    """Return the shares (a, k) of the positives, normalized to the sum 1 per anchor.

    If all shares of an anchor are 0, its positives have equal shares.
    """
    weights = near.weights * near.of(shares)
    total = weights.sum(1, keepdim=True)
    weights = torch.where(total > 0, weights, near.weights)
    return weights / torch.where(total > 0, total, near.weights.sum(1, keepdim=True).clamp_min(1))


def some(mask: Tensor) -> Tensor:
    """Return ones and zeros (r,): 1 for each row of the mask (r, c) that contains a one, else 0."""
    return mask.sum(1).clamp_max(1)


def tempered(scores: Tensor, temperature: T) -> Tensor:
    """Divide scores by a temperature; see `inverse`."""
    factor = inverse(temperature)
    return scores if not isinstance(factor, Tensor) and factor == 1 else scores * factor


def inverse(temperature: T) -> T:
    """Return 1 / temperature. The value of a learned temperature, a tensor, is not read.

    Raises:
        InputError: the temperature is a number that is not above 0.
    """
    if not isinstance(temperature, Tensor) and not temperature > 0:
        raise InputError(f"the temperature of a loss is {temperature:g}; pass a temperature above 0")
    return temperature**-1


def softplus(values: Tensor) -> Tensor:
    """Return log(1 + exp(x)), exact to the last bit of a float64 (by default torch returns x where x > 20)."""
    return F.softplus(values, threshold=40.0)
