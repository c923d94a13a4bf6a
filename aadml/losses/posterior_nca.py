"""Posterior NCA: neighborhood components analysis (Goldberger et al., NIPS 2004) on class posteriors.

Reference: Goldberger et al., Neighbourhood components analysis, NIPS 2004, https://papers.nips.cc/paper_files/paper/2004/hash/42fe880812925e520249e808937738d2-Abstract.html
"""

from typing import Any

import torch
from torch import Tensor

from aadml.comparison import Comparison, Terms
from aadml.comparison.autograd_functions import applied, once_differentiable
from aadml.comparison.host_reads import code_range
from aadml.comparison.options import Temperature
from aadml.comparison.pairwise import full_precision
from aadml.losses.kernels.likelihood import some, tempered
from aadml.losses.kernels.row_blocks import Costs, Rows, summed
from aadml.losses.kernels.scores import Scores

LEAST = {kind: torch.finfo(kind).tiny / torch.finfo(kind).eps for kind in (torch.float32, torch.float64)}
"""Smallest sum of probabilities. The gradients of many candidates, divided by it, do not add up to infinity."""
NARROW = 16
"""Number of columns below which torch's softmax of rows is slow."""


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
    anchor_group, group, groups, possible = _numbered(*codes.groups)
    total: Tensor = applied(_ByClass, *vectors, anchor_group, group, possible, groups)
    return Terms(total) if possible is None else Terms(total, (total > 0).long(), possible)


def _numbered(left: Tensor, right: Tensor) -> tuple[Tensor, Tensor, int, Tensor | None]:
    """Number the groups of the codes (a,) and (c,) of anchors and candidates.

    Returns:
        Groups (a,) and (c,) of anchors and candidates as numbers in 0..g-1, the number g, and the numbers of terms
        (a,): 1 for an anchor with positives and negatives, else 0. The numbers of terms are None if all are 1. In
        compiled code, no shape depends on data, so g is a + c.
    """
    least, most = (0, -1) if torch.compiler.is_compiling() else _range(left, right)
    known = least >= 0 and 0 <= most < len(left) + len(right)
    groups = most + 1 if known else len(left) + len(right)
    if known and left is right and least < most:
        return left, right, groups, None
    if not known:
        both = torch.cat([left, right])
        left, right = torch.searchsorted(both.sort().values, both).split([len(left), len(right)])
    size = right.new_zeros(groups).index_add_(0, right, torch.ones_like(right))
    return left, right, groups, (size % max(len(right), 1)).clamp_max_(1).index_select(0, left)


def _range(left: Tensor, right: Tensor) -> tuple[int, int]:
    if left is right:
        return code_range(left)
    ends = code_range(left), code_range(right)
    return min(ends)[0], max(most for _, most in ends)


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
        possible: Tensor | None,
        groups: int,
    ) -> Tensor:
        least = LEAST[anchors.dtype]
        left, right = _posteriors(anchors), _posteriors(candidates)
        sums = right.new_zeros(groups, right.shape[1]).index_add_(0, group, right)
        everyone = sums.sum(0)
        with full_precision(left):
            every = torch.mv(left, everyone).add_(least)
        products = sums.index_select(0, anchor_group).mul_(left)
        alike = products.sum(1).add_(least)
        ctx.save_for_backward(
            anchors, candidates, left, right, products, sums, everyone, every, alike, anchor_group, group, possible
        )
        total = (every / alike).log()
        return total if possible is None else total * possible

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, above: Tensor) -> tuple[Tensor | None, ...]:
        left, right, products, sums, everyone, every, alike, anchor_group, group, possible = ctx.saved_tensors[2:]
        weight = above if possible is None else above * possible
        by_every, by_alike = weight / every, (weight / alike)[:, None]
        weighed = left * by_alike
        by_group = torch.zeros_like(sums).index_add_(0, anchor_group, weighed)
        with full_precision(left):
            by_sums = torch.mv(left.T, by_every) - by_group
        # the loss does not depend on the length of p_i, so the softmax has no further term on this side
        room = None if torch.compiler.is_compiling() else weighed  # compiled code needs no buffer
        by_left = torch.mul(left, everyone, out=room).mul_(by_every[:, None]).addcmul_(products, by_alike, value=-1)
        return by_left, _gradient_of_logits(by_sums.index_select(0, group), right), *[None] * 4


def _posteriors(logits: Tensor) -> Tensor:
    """Return the softmax of rows (n, C).

    With few columns, the softmax of a contiguous transpose takes a sixth of the time of a softmax of rows.
    """
    return torch.softmax(logits, 1) if logits.shape[1] >= NARROW else torch.softmax(logits.T.contiguous(), 0).T


def _gradient_of_logits(above: Tensor, posteriors: Tensor) -> Tensor:
    """Return the gradient of the logits of `_posteriors` from the gradient of the posteriors, which is overwritten."""
    if posteriors.shape[1] >= NARROW:
        return torch._softmax_backward_data(above, posteriors, 1, above.dtype, grad_input=above)
    gradient = above.mul_(posteriors)
    return gradient.addcmul_(posteriors, gradient.sum(1, keepdim=True), value=-1)


def _cost(rows: Rows) -> Costs:
    least = LEAST[rows.scores.dtype]
    possible, rivals = some(rows.positives) * rows.has_negatives, rows.rivals
    alike = (rows.scores * rows.positives).sum(1) + least
    every = (rows.scores if rivals is None else rows.scores * rivals).sum(1) + least
    total = (every.log() - alike.log()) * possible
    by_every, by_alike = ((possible / mass)[:, None] for mass in (every, alike))
    outside = by_every if rivals is None else rivals * by_every
    return Costs(total, total > 0, possible, torch.sub(outside, rows.positives * by_alike, out=rows.room))
