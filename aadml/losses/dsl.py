"""Dual softmax loss (Cheng et al., CAMoE, 2021).

Reference: Cheng et al., Improving video-text retrieval by multi-stream corpus alignment and dual softmax loss, 2021, https://arxiv.org/abs/2109.04290
"""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from aadml.comparison import Comparison, Terms
from aadml.comparison.autograd_functions import applied, once_differentiable
from aadml.comparison.options import Temperature
from aadml.losses.kernels.likelihood import CLOSE, inverse, mean_over_positives
from aadml.losses.kernels.row_blocks import (
    PER_BIT,
    Costs,
    Rows,
    exp_over_mean,
    log_mean_exp_of_columns,
    summed,
    without,
)
from aadml.losses.kernels.scores import Scores, scores_of


def dsl(comparison: Comparison, *, temperature: Temperature = 0.05, prior_temperature: Temperature = 1000.0) -> Terms:
    """Compute the cross-entropy over candidates, with scores weighted by each candidate's softmax over anchors.

        S_ij = cos(x_i, r_j) / tau
        S'_ij = a_j S_ij q_ij,   q_ij = softmax over anchors k of (S_kj / prior_temperature) at i
        total_i = -1/|P_i| sum over p in P_i of  log softmax over j of (S'_ij) at p

    The paper trains on pairs. With labels, the loss is the mean over the positives. Both softmaxes leave out
    entries that are neither positives nor negatives. The factor a_j is the number of anchors that are compared
    with candidate j. The softmax over anchors makes the loss of an anchor depend on the other anchors of the batch.
    Use both directions for a symmetric loss.

    Args:
        comparison: a anchors against c candidates.
        temperature: tau (0.05: a logit scale of 20; CAMoE learns the scale).
        prior_temperature: temperature of the softmax over anchors (1000: the released code, which leaves the prior
            almost flat).

    Returns:
        One term per anchor; no terms for anchors without positives. Without negatives, several positives still
        compete with each other.

    Raises:
        InputError: a temperature is not above 0.

    Example:
        >>> pairs = Comparison.of_ids(audio, text, clips, clips)
        >>> terms = dsl(pairs, temperature=0.05)
        >>> loss = terms.total.sum() / terms.possible.sum().clamp_min(1)
        >>> loss.backward()
        >>> optimizer.step()
        >>> optimizer.zero_grad()
    """

    def cost(rows: Rows) -> Costs:
        assert rows.columns is not None
        prior = exp_over_mean(torch.add(rows.columns, rows.scores, alpha=flatness))
        weighed = rows.scores * prior
        costs = mean_over_positives(weighed, rows.near, rows.rivals, rows.shares, weighed)
        by_prior = costs.gradient.mul_(prior)
        by_column = torch.mul(by_prior, rows.scores, out=prior)
        return replace(costs, gradient=by_prior.add_(by_column, alpha=flatness), column_gradient=by_column)

    flatness = inverse(prior_temperature)
    scores = scores_of(comparison, "cosine", inverse(temperature)).made_once()
    every = slice(0, len(scores.left))
    if scores.right is None and (torch.compiler.is_compiling() or scores.blocks(every) == [every]):
        rivals = Rows(scores.left.detach(), comparison, every, None).rivals
        return summed(comparison, Scores(applied(_Weighed, scores.left, rivals, flatness, scores.span)), _cross_entropy)
    return summed(comparison, scores, cost, columns=-log_mean_exp_of_columns(comparison, scores, flatness))


def _cross_entropy(rows: Rows) -> Costs:
    return mean_over_positives(rows.scores, rows.near, rows.rivals, rows.shares)


class _Weighed(torch.autograd.Function):
    """Weighted scores S' (a, c) of `dsl`, computed from S in fewer passes than by blocks of rows."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, rivals: Tensor | None, flatness: float, span: float) -> Tensor:
        ctx.flatness, ctx.count = flatness, len(scores) if rivals is None else rivals.sum(0).clamp_min_(1)
        if rivals is None and span * flatness <= CLOSE:  # no exponential needs the maximum of its column
            prior = (scores * (flatness * PER_BIT)).exp2_()
            prior.mul_(ctx.count / prior.sum(0))
        else:
            room = flatness * scores
            prior = torch.softmax(room if rivals is None else without(room, 1 - rivals), 0).mul_(ctx.count)
        ctx.save_for_backward(scores, prior)
        return prior * scores

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, above: Tensor) -> tuple[Tensor | None, ...]:
        scores, prior = ctx.saved_tensors
        gradient = above * prior
        through = gradient * scores
        column = through.sum(0).div_(ctx.count)
        gradient.add_(through, alpha=ctx.flatness).addcmul_(prior, column, value=-ctx.flatness)
        return gradient, None, None, None
