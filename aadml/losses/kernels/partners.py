"""Cross-entropy of partners in two opposite directions, from one matrix of exponentials of scores."""

from typing import Any

import torch
from torch import Tensor

from aadml.comparison import Comparison, Terms
from aadml.comparison.autograd_functions import applied, once_differentiable
from aadml.comparison.pairwise import full_precision, lengths
from aadml.losses.kernels.likelihood import NOTHING, inverse
from aadml.losses.kernels.row_blocks import PER_BIT
from aadml.losses.kernels.scores import gradient_of_units, gradients_of_products, products

HIGHEST_BITS = 100.0
"""Largest absolute binary logarithm of an exponential whose sums and reciprocals keep full precision in float32."""


def of_partners(comparison: Comparison, temperature: float) -> Terms | None:
    """Compute the cross-entropy of each anchor's partner, and at the same time of the opposite direction.

        total_i = log(1 + sum over j unlike i of exp((s_ij - s_ii) / tau)),   s is the cosine

    Args:
        comparison: a anchors against their a partners.
        temperature: tau; a scalar tensor if tau is learned.

    Returns:
        One term per anchor. None without an opposite comparison, or if any anchor has another positive than its
        partner, a candidate in neither mask, or no negatives. None also for weights of positives, for relevance
        scores, and for scores with too large a range for one matrix of exponentials.

    Raises:
        InputError: the temperature is not above 0.
    """
    shared, codes = comparison.shared, comparison.codes_of_masks()
    weighted = comparison.shares is not None or comparison.relevance is not None
    if shared is None or codes is None or weighted or len(comparison.anchors) < 2:
        return None
    if not shared.of((codes.groups, codes.clips, codes.itself), lambda: (codes.pair_only_partners(),) * 2):
        return None
    return shared.of(("partners", temperature), lambda: _of_both(comparison, temperature))


def _of_both(comparison: Comparison, temperature: float) -> tuple[Terms | None, Terms | None]:
    totals, active, possible = applied(_Partners, *comparison.vectors("cosine"), inverse(temperature))
    first, second = (None if totals is None else Terms(totals[k], active[k], possible) for k in range(2))
    return first, second


class _Partners(torch.autograd.Function):
    """Autograd function of the totals (2, n) of anchors and of candidates, with counts of terms.

    With e_ij = exp(factor s_ij), the gradient of the total of anchor i with respect to factor s_ij is e_ij / sum over
    k of e_ik, and the gradient of the total of candidate j is e_ij / sum over k of e_kj. For scores with too large a
    range, all results are None.
    """

    @staticmethod
    def forward(ctx: Any, anchors: Tensor, candidates: Tensor, factor: Tensor | float) -> tuple[Tensor | None, ...]:
        sizes = lengths(anchors), lengths(candidates)
        left, right, ctx.scale = anchors / sizes[0], candidates / sizes[1], float(factor)
        highest = ctx.scale * PER_BIT
        bits = products(left, right, highest)
        ctx.far = 2 * highest > HIGHEST_BITS  # ratios may overflow float32, and gradients may be denormal
        if highest > HIGHEST_BITS:
            low, high = (float(end) for end in bits.aminmax())
            if not high - low <= 2 * HIGHEST_BITS:
                return None, None, None
            bits.sub_((high + low) / 2)
        exponentials = bits.exp2_()
        partner = exponentials.diagonal().clone()
        rivals = torch.stack([exponentials.fill_diagonal_(0).sum(1), exponentials.sum(0)])
        inverses = (rivals + partner).reciprocal_()
        ratios = (rivals.double() if ctx.far else rivals) / partner
        totals = torch.threshold(ratios.log1p_(), NOTHING, 0.0).to(left.dtype)
        counts = (totals > 0).long(), torch.ones(len(left), dtype=torch.int64)
        learned = factor if isinstance(factor, Tensor) else None
        ctx.save_for_backward(anchors, candidates, learned, left, right, *sizes, exponentials, rivals, inverses)
        ctx.mark_non_differentiable(*counts)
        return totals, *counts

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, above: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        *inputs, left, right, left_lengths, right_lengths, exponentials, rivals, inverses = ctx.saved_tensors
        wanted = ctx.needs_input_grad[0] or inputs[2] is not None, ctx.needs_input_grad[1]
        with full_precision(above):
            weights = inverses * above
            gradient = torch.add(weights[0, :, None], weights[1]).mul_(exponentials)
            if ctx.far:
                torch.hardshrink(gradient, NOTHING, out=gradient)
            gradient.diagonal().copy_((rivals * weights).sum(0).neg_())
            of_left, of_right = gradients_of_products(gradient, left, right, wanted, ctx.scale)
            of_factor = None
            if of_left is not None and inputs[2] is not None:
                of_factor = (of_left * left).sum().div_(ctx.scale).to(inputs[2]).view_as(inputs[2])
            return (
                None if of_left is None else gradient_of_units(of_left, left, left_lengths),
                None if of_right is None else gradient_of_units(of_right, right, right_lengths),
                of_factor,
            )
