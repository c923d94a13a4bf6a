"""Angular loss (Wang et al., ICCV 2017).

Reference: Wang et al., Deep metric learning with angular loss, ICCV 2017, https://arxiv.org/abs/1708.01682
"""

import math
from typing import Annotated, Any

import torch
from annotated_types import Interval, Unit
from torch import Tensor

from aadml.comparison import Comparison, Terms, pairwise
from aadml.comparison.autograd_functions import applied, once_differentiable
from aadml.comparison.options import Fidelity
from aadml.losses.kernels.likelihood import softplus, some
from aadml.losses.kernels.row_blocks import Rows, counted, ones
from aadml.losses.kernels.scores import products, scores_of, unit

MANY = 8
"""Minimum mean number of anchors per group. For smaller groups, one product of all anchors is faster."""
STEEPEST = 70.0
"""Upper limit of the angle in degrees: exponentials of unit vectors, at most exp(8 tan^2(alpha)), then fit float32."""
Angle = Annotated[float, Interval(gt=0, le=STEEPEST), Unit("degrees")]


def angular(comparison: Comparison, *, alpha: Angle = 45.0, fidelity: Fidelity = "repaired") -> Terms:
    """Compute the loss that bounds the angle at the negative in triangles of anchor, positive and negative.

        total_i = sum over p in P_i of  log(1 + sum over n in N_i of exp(f_ipn))
        f_ipn = 4 t^2 (x_i + r_p) . r_n - 2 (1 + t^2) x_i . r_p

    with t = tan(alpha), and anchors x and candidates r normalized to length 1 (the paper's N-pair form). The inner
    sum over n is one entry of a matrix product, exp(4 t^2 x_i . r_n) times exp(4 t^2 r_p . r_n), so triplets are
    never stored. Memory is O(a c + c^2). If classes have at least `MANY` anchors on average, entries are computed
    class by class, in O(a c^2 / C) time for C classes of equal size. For smaller classes, on a GPU and in compiled
    code, the entries of all pairs are computed in O(a c^2) time. The time is cubic, because f depends on a different
    vector x_i + r_p for every pair. The sum of exponentials over negatives has no shorter exact form.

    Args:
        comparison: a anchors against c candidates.
        alpha: the angle in degrees (45: Wang et al.; pytorch-metric-learning uses 40).
        fidelity: "repaired", or "source" to keep the lengths of negatives r_n, as in pytorch-metric-learning. The
            paper normalizes all vectors to length 1; with "source", long vectors overflow.

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
    scale: Tensor | float = 4 * gradient
    if fidelity == "source":
        scale = scale * torch.linalg.vector_norm(candidates, dim=1)
    scores, units = scores_of(comparison, "cosine"), unit(candidates)
    cosine = scores.left if scores.right is None else products(scores.left, scores.right)  # (a, c)
    to_anchor, to_positive = scale * cosine, scale * products(units, units)
    weight = 2 * (1 + gradient)
    if torch.compiler.is_compiling():  # compiled code stores bool masks element by element
        rows = Rows(cosine, comparison, slice(0, len(cosine)), None)
        near = rows.positives * some(rows.negatives)[:, None]
        crowd = pairwise.dot(to_anchor.exp().masked_fill(rows.negatives == 0, 0), to_positive.exp())
        cost = softplus(torch.where(near > 0, crowd, 1).log() - weight * cosine) * near
        return Terms(cost.sum(1), counted(cost), ones(near))
    pairs = comparison.positives & comparison.negatives.any(1, keepdim=True)
    arguments = to_anchor, to_positive, cosine, comparison.negatives, pairs, weight
    total, active = applied(_Crowds, *arguments)
    return Terms(total, active, ones(pairs))


class _Crowds(torch.autograd.Function):
    """Losses (a,) and numbers (a,) of active terms, computed by groups of anchors that share positives.

    total_i = sum over p in P_i of  log(1 + exp(log(sum over n in N_i of exp(u_in + v_pn)) - w s_ip))

    u, v, s and w are `to_anchor` (a, c), `to_positive` (c, c), `cosine` (a, c) and `weight`.
    """

    @staticmethod
    def forward(
        ctx: Any,
        to_anchor: Tensor,
        to_positive: Tensor,
        cosine: Tensor,
        negatives: Tensor,
        pairs: Tensor,
        weight: float,
    ) -> Any:
        to_anchor, to_positive = to_anchor.exp().mul_(negatives), to_positive.exp()
        total, ctx.weight = cosine.new_zeros(len(pairs)), weight
        active = torch.zeros_like(total, dtype=torch.int64)
        ctx.groups, shares = _groups(pairs), []
        for rows, columns in ctx.groups:
            chosen = _part(pairs, rows, columns)
            crowd = pairwise.dot(_part(to_anchor, rows), _part(to_positive, columns)).masked_fill_(~chosen, 1)
            gap = crowd.log().sub_(_part(cosine, rows, columns), alpha=weight)
            cost = softplus(gap).mul_(chosen)
            total[rows], active[rows] = cost.sum(1), (cost > 0).sum(1)
            shares += [gap.sigmoid_().mul_(chosen), crowd]
        ctx.save_for_backward(cosine, to_anchor, to_positive, *shares)
        ctx.mark_non_differentiable(active)
        return total, active

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, above: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        _, to_anchor, to_positive, *shares = ctx.saved_tensors
        by_anchor, by_cosine = torch.zeros_like(to_anchor), torch.zeros_like(to_anchor)
        by_positive = torch.zeros_like(to_positive)
        for (rows, columns), share, crowd in zip(ctx.groups, shares[::2], shares[1::2], strict=True):
            share = share * above[rows, None]
            by_cosine[rows[:, None], columns] = -ctx.weight * share
            share /= crowd
            with pairwise.full_precision(share):
                by_anchor[rows] = share @ _part(to_positive, columns)
                by_positive.index_add_(0, columns, share.T @ _part(to_anchor, rows))
        return by_anchor.mul_(to_anchor), by_positive.mul_(to_positive), by_cosine, None, None, None


def _part(matrix: Tensor, rows: Tensor, columns: Tensor | None = None) -> Tensor:
    """Return some rows, and optionally some columns, of a matrix; the matrix itself if the part is the whole."""
    if len(rows) == len(matrix) and (columns is None or len(columns) == matrix.shape[1]):
        return matrix  # the only group has all rows in order
    return matrix[rows] if columns is None else matrix[rows[:, None], columns]


def _groups(pairs: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Group the anchors by their first positive, and hence by class.

    If the groups would be small, and on a GPU, all anchors and all candidates are one group.

    Returns:
        Per group, the row numbers (g,) of its anchors and the column numbers (k,) of all positives of these
        anchors.
    """
    anchors, candidates = (torch.arange(count, device=pairs.device) for count in pairs.shape)
    if not pairs.numel() or pairs.device.type != "cpu":
        return [(anchors, candidates)]
    kind = pairs.byte().argmax(1)
    members = torch.zeros(len(candidates), len(candidates), dtype=torch.int32, device=pairs.device)
    members = members.index_add_(0, kind, pairs.int()) > 0
    sizes = torch.stack([torch.zeros_like(candidates).index_add_(0, kind, torch.ones_like(kind)), members.sum(1)])
    heights, widths = zip(*(size for size in sizes.T.tolist() if size[0]), strict=True)
    if len(heights) * MANY > len(pairs):
        return [(anchors, candidates)]
    columns = torch.nonzero_static(members, size=sum(widths))[:, 1]
    return list(zip(kind.argsort().split(heights), columns.split(widths), strict=True))
