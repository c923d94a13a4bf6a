"""Negative log-likelihoods of positives among rivals: the two ways softmax losses deal with many positives."""

import torch
from torch import Tensor
from torch.nn import functional as F

from aadml.comparison import Terms
from aadml.comparison.pairwise import counted, masked_logsumexp, masked_mean
from feature_extraction.ground.errors import InputError


def of_each_positive(logits: Tensor, positives: Tensor, negatives: Tensor, shares: Tensor | None = None) -> Terms:
    """Let every positive stand alone against the negatives; other positives of the anchor stay out of its sum.

        total_i = sum over p in P_i of  u_ip log(1 + sum over n in N_i of exp(s_in - s_ip))

    Args:
        logits: s (a, c).
        positives: (a, c) bool.
        negatives: (a, c) bool.
        shares: (a, c) of the positives; u is such a share over the mean share of its anchor. None: u = 1.

    Returns:
        One term a positive, for anchors that have negatives; nothing for the others.
    """
    contested = negatives.any(1, keepdim=True)
    pairs = positives & contested
    rivals = masked_logsumexp(logits, negatives)[:, None].masked_fill(~contested, 0)
    cost = softplus((rivals - logits).masked_select(pairs))
    if shares is not None:
        mean = masked_mean(shares, positives)[:, None]
        cost = cost * (shares / torch.where(mean > 0, mean, 1)).to(cost.dtype).masked_select(pairs)
    return terms_of_pairs(cost, pairs)


def mean_over_positives(logits: Tensor, positives: Tensor, rivals: Tensor, shares: Tensor | None = None) -> Terms:
    """Take the mean over positives of their log-probability among all `rivals`, the positives included.

        total_i = -1/|P_i| sum over p in P_i of  log( exp(s_ip) / sum over j in rivals_i of exp(s_ij) )

    With shares u it is the cross-entropy with soft targets, the mean over positives being weighed by u.

    Args:
        logits: s (a, c).
        positives: (a, c) bool.
        rivals: (a, c) bool, a superset of `positives`.
        shares: (a, c) of the positives, not negative; None takes all alike.

    Returns:
        One term an anchor, for anchors that have positives; nothing for the others.
    """
    possible = positives.any(1)
    everyone = masked_logsumexp(logits, rivals).masked_fill(~possible, 0)
    total = (everyone - _mean(logits, positives, shares)).masked_fill(~possible, 0).clamp_min(0)
    return Terms(total, ((total > 0) & possible).long(), possible.long())


def _mean(values: Tensor, mask: Tensor, shares: Tensor | None) -> Tensor:
    """Take the mean over the entries of `mask`, by row, weighed by shares: (a, c) -> (a,)."""
    if shares is None:
        return masked_mean(values, mask)
    shares = shares.to(values.dtype).masked_fill(~mask, 0)
    whole = shares.sum(1)
    mean = (shares * values.masked_fill(~mask, 0)).sum(1) / torch.where(whole > 0, whole, 1)
    return torch.where(whole > 0, mean, masked_mean(values, mask))


def terms_of_pairs(cost: Tensor, pairs: Tensor) -> Terms:
    """Sum by anchor what the pairs cost, computed for them alone: positives are few among all entries.

    Args:
        cost: (m,) of the m pairs, in the order of `Tensor.masked_select`.
        pairs: (a, c) bool.
    """
    spread = cost.new_zeros(pairs.shape).masked_scatter(pairs, cost)
    return Terms(spread.sum(1), counted(spread > 0), counted(pairs))


def tempered(scores: Tensor, temperature: float) -> Tensor:
    """Divide scores by a temperature.

    Raises:
        InputError: a temperature that is not above 0.
    """
    if not temperature > 0:
        raise InputError(f"loss: a temperature must be above 0, not {temperature:g}")
    return scores / temperature


def softplus(values: Tensor) -> Tensor:
    """log(1 + exp(x)), exact for large x too (torch's own becomes the identity at 20)."""
    return -F.logsigmoid(-values)
