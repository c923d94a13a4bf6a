"""Posterior NCA: neighborhood components analysis (Goldberger et al., NIPS 2004) on class posteriors.

Reference: Goldberger et al., Neighbourhood components analysis, NIPS 2004, https://papers.nips.cc/paper_files/paper/2004/hash/42fe880812925e520249e808937738d2-Abstract.html
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from aadml.comparison import Comparison, Terms
from aadml.comparison.host_reads import code_range
from aadml.comparison.options import Temperature
from aadml.comparison.pairwise import full_precision
from aadml.losses.kernels.likelihood import some, tempered
from aadml.losses.kernels.row_blocks import Costs, Rows, summed
from aadml.losses.kernels.scores import Scores, applied, output


def posterior_nca(comparison: Comparison, *, temperature: Temperature = 1.0) -> Terms:
    """Compute the negative log of the positives' share in an anchor's summed inner products of class posteriors.

        p = softmax(x / T),   total_i = -log( sum over j in P_i of p_i.p_j  /  sum over j in P_i and N_i of p_i.p_j )

    p_i.p_j is the probability that two items with independent classes have the same class. Posterior read-outs rank by
    this score. The vectors are used as logits, one per class. The score is linear in p_j. Where all pairs count, the
    candidates of each class are therefore summed first. The result is exact, and the time is O((a + c) d) for vectors
    of width d. Add the loss to a cross-entropy. Training with only this loss fails, because the loss does not assign
    outputs to classes.

    Args:
        comparison: a anchors against c candidates, both in label space.
        temperature: T (1.0: the default of the posterior read-out).

    Returns:
        One term per anchor; no terms for anchors without positives or without negatives.

    Raises:
        InputError: the comparison has relevance scores instead of vectors, or the temperature is not above 0.

    Example:
        >>> comparison = Comparison.of_labels(audio, visual, labels, labels)
        >>> terms = posterior_nca(comparison)
        >>> loss = torch.nn.functional.cross_entropy(audio, labels) + terms.total.mean()
        >>> loss.backward()
        >>> optimizer.step()
        >>> optimizer.zero_grad()
    """
    vectors = [tempered(side, temperature) for side in comparison.vectors("posterior-nca")]
    codes = comparison.codes_of_all_pairs()
    if codes is None:
        left, right = (torch.softmax(side, 1) for side in vectors)
        return summed(comparison, Scores(left, right), _cost)
    anchor_group, group, groups = _numbered(*codes.groups)
    size = group.new_zeros(groups).index_add_(0, group, torch.ones_like(group))
    possible = (size % max(len(group), 1)).clamp_max_(1).index_select(0, anchor_group)
    total: Tensor = applied(_ByClass, *vectors, anchor_group, group, possible, groups)
    return Terms(total, (total > 0).long(), possible)


def _numbered(left: Tensor, right: Tensor) -> tuple[Tensor, Tensor, int]:
    """Return codes (a,) and (c,) as numbers in 0..g-1, equal for equal codes only, and return g.

    In compiled code, no shape depends on data, so g is a + c there.
    """
    groups = None if torch.compiler.is_compiling() else _count_of(left, right)
    if groups is not None:
        return left, right, groups
    both = torch.cat([left, right])
    left, right = torch.searchsorted(both.sort().values, both).split([len(left), len(right)])
    return left, right, len(both)


def _count_of(left: Tensor, right: Tensor) -> int | None:
    """Return a number g of groups if all codes (a,) and (c,) are in 0..g-1, with g at most a + c, else None."""
    least, most = zip(*map(code_range, [left] if left is right else [left, right]), strict=True)
    return max(most) + 1 if min(least) >= 0 and max(most) < len(left) + len(right) else None


class _ByClass(torch.autograd.Function):
    """Loss of each anchor (a,), from the sum s_g of the posteriors of the candidates of each class g.

    total_i = -log(p_i.s_y / p_i.s), y the class of anchor i and s the sum of s_g over all classes
    """

    @staticmethod
    def forward(
        ctx: Any,
        anchors: Tensor,
        candidates: Tensor,
        anchor_group: Tensor,
        group: Tensor,
        possible: Tensor,
        groups: int,
    ) -> Tensor:
        least = torch.finfo(anchors.dtype).tiny
        left, right = _posteriors(anchors), _posteriors(candidates)
        sums = right.new_zeros(groups, right.shape[1]).index_add_(0, group, right)
        everyone = sums.sum(0)
        with full_precision(left):
            every = torch.mv(left, everyone).add_(least)
        alike = sums.index_select(0, anchor_group).mul_(left).sum(1).add_(least)
        ctx.save_for_backward(left, right, sums, everyone, every, alike, anchor_group, group, possible)
        return output((every.log() - alike.log()).mul_(possible))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, above: Tensor) -> tuple[Tensor | None, ...]:
        left, right, sums, everyone, every, alike, anchor_group, group, possible = ctx.saved_tensors
        floor, weight = _floor(left.dtype), above * possible
        by_every, by_alike = weight / every.clamp_min(floor), (weight / alike.clamp_min(floor)).neg_()[:, None]
        with full_precision(left):
            by_everyone = torch.mv(left.T, by_every)
        by_sums = torch.zeros_like(sums).index_add_(0, anchor_group, left * by_alike).add_(by_everyone)
        # the loss does not depend on the length of p_i, so the softmax has no further term on this side
        by_left = sums.index_select(0, anchor_group).mul_(by_alike).addr_(by_every, everyone).mul_(left)
        by_right = by_sums.index_select(0, group).mul_(right)
        return by_left, by_right.addcmul_(right, by_right.sum(1, keepdim=True), value=-1), *[None] * 4


def _posteriors(logits: Tensor) -> Tensor:
    """Return the softmax of rows (n, C).

    With few columns, the softmax of a contiguous transpose takes a sixth of the time of a softmax of rows.
    """
    return torch.softmax(logits, 1) if logits.shape[1] >= 16 else torch.softmax(logits.T.contiguous(), 0).T


def _floor(dtype: torch.dtype) -> float:
    """Return the smallest divisor of gradients; below it, gradients of many candidates add up to infinity."""
    return torch.finfo(dtype).tiny / torch.finfo(dtype).eps


def _cost(rows: Rows) -> Costs:
    least, floor = torch.finfo(rows.scores.dtype).tiny, _floor(rows.scores.dtype)
    possible, rivals = some(rows.positives) * rows.has_negatives, rows.rivals
    alike = (rows.scores * rows.positives).sum(1) + least
    every = (rows.scores if rivals is None else rows.scores * rivals).sum(1) + least
    total = (every.log() - alike.log()) * possible
    by_every, by_alike = ((possible / mass.clamp_min(floor))[:, None] for mass in (every, alike))
    outside = by_every if rivals is None else rivals * by_every
    return Costs(total, total > 0, possible, torch.sub(outside, rows.positives * by_alike, out=rows.room))
