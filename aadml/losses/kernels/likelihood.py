"""Negative log-likelihoods of positives among rivals: the two ways softmax losses deal with many positives."""

from typing import TypeVar

import torch
from torch import Tensor
from torch.nn import functional as F

from aadml.losses.kernels.row_blocks import Costs, counted, excluding
from feature_extraction.ground.errors import InputError

T = TypeVar("T", float, Tensor)
NOTHING = 1e-30
"""A share that changes no sum."""


def of_each_positive(logits: Tensor, positives: Tensor, negatives: Tensor) -> Costs:
    """Let every positive stand alone against the negatives; other positives of the anchor stay out of its sum.

        total_i = sum over p in P_i of  log(1 + sum over n in N_i of exp(s_in - s_ip))
        slope_ip = -h_ip,   slope_in = softmax over N_i of (s_in) at n  times  sum over p of h_ip,
        h_ip = 1 / (1 + exp(s_ip - log sum over n of exp(s_in)))

    Args:
        logits: s (a, c); `total` is differentiable by them too, so that small matrices need no engine.
        positives: (a, c) zeros and ones.
        negatives: (a, c) zeros and ones, disjoint from `positives`.

    Returns:
        One term a positive, for anchors that have negatives; nothing for the others.
    """
    share, rivals = _softmax(logits, negatives)
    pairs = positives * some(negatives)[:, None]
    gap = rivals[:, None] - logits
    cost = softplus(gap) * pairs
    here = torch.sigmoid(gap).mul_(pairs)
    slope = share.mul_(here.sum(1, keepdim=True)).sub_(here)
    return Costs(cost.sum(1), counted(cost), counted(pairs), slope)


def mean_over_positives(logits: Tensor, positives: Tensor, rivals: Tensor) -> Costs:
    """Take the mean over positives of their log-probability among all `rivals`, the positives included.

        total_i = -1/|P_i| sum over p in P_i of  log( exp(s_ip) / sum over j in rivals_i of exp(s_ij) )
        slope_ij = softmax over rivals_i of (s_ij) at j  minus  1/|P_i| where j is in P_i

    Args:
        logits: s (a, c).
        positives: (a, c) zeros and ones.
        rivals: (a, c) zeros and ones, a superset of `positives`.

    Returns:
        One term an anchor, for anchors that have positives; nothing for the others.
    """
    possible = some(positives)
    share, everyone = _softmax(logits, rivals)
    part = possible / positives.sum(1).clamp_min(1)
    mean = (logits * positives).sum(1) * part
    total = (everyone * possible - mean).clamp_min_(0)
    slope = share.mul_(possible[:, None]).addcmul_(positives, -part[:, None])
    return Costs(total, (total > 0).long(), possible.long(), slope)


def _softmax(logits: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Give each row's softmax within a mask (a, c), zero outside, and the log of the sum of its exponentials (a,)."""
    if not logits.shape[1]:
        return torch.zeros_like(logits), logits.new_zeros(len(logits))
    kept = excluding(logits, mask)
    peak = kept.amax(1, keepdim=True)
    share = (kept - peak).exp()
    mass = share.sum(1, keepdim=True)
    # what is smaller than any rounding is none: denormal numbers slow down products a hundred times
    part = F.threshold(share * (some(mask)[:, None] / mass), NOTHING, 0.0, inplace=True)
    return part, (peak + mass.log())[:, 0]


def some(mask: Tensor) -> Tensor:
    """Say (r,), by a one, which rows of zeros and ones hold a one."""
    return mask.sum(1).clamp_max(1)


def tempered(scores: Tensor, temperature: float) -> Tensor:
    """Divide scores by a temperature.

    Raises:
        InputError: a temperature that is not above 0.
    """
    return scores * inverse(temperature)


def inverse(temperature: T) -> T:
    """Give the factor that a temperature means.

    Raises:
        InputError: a temperature that is not above 0.
    """
    if not temperature > 0:
        raise InputError(f"loss: a temperature must be above 0, not {temperature:g}")
    return temperature**-1


def softplus(values: Tensor) -> Tensor:
    """log(1 + exp(x)), exact for large x too (torch's own becomes the identity at 20)."""
    return -F.logsigmoid(-values)
