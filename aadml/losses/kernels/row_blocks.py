"""Losses by blocks of rows: values and gradients in one pass, in memory for a block of rows instead of all pairs.

A loss is a cost of the rows of a score matrix: it says what each anchor costs and, in `slope`, how that changes with
each score. Scores of vectors are inner products, or functions of them, so the vectors' gradients are two more products,
with the slopes, made while a block still lies in the cache. The backward pass multiplies them by what comes from above;
where that differs from anchor to anchor, it goes through the blocks once more. A gradient of a gradient is refused.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

import torch
from torch import Tensor

from aadml.comparison import Comparison, Terms
from aadml.comparison.pairwise import TINY, as_products, normalized
from aadml.comparison.scores import SCORES, Score
from feature_extraction.ground.tables import lookup

BLOCK = {"cpu": 1 << 18, "cuda": 1 << 25}
"""Scores of a block: on a processor they stay in the cache of a core."""
ROWS = 256
"""Rows that a block of vectors of as many dimensions has at least: their product takes longer than the cache saves."""

MASKS = ("positives", "negatives", "within")
EXCLUDED = 1e30
"""What is subtracted from scores that are to be no rivals: more than any score, less than what could overflow."""

Kind = Literal["product", "squared distance", "distance"]
KEPT = {"squared-euclidean": "squared_distance", "euclidean": "distance", "cosine": "cosine", "dot": "dot"}


@dataclass(frozen=True)
class Rows:
    """Some rows of a comparison.

    Attributes:
        scores: (r, c), to be read alone.
        positives: (r, c) ones and zeros, of the type of the scores.
        negatives: (r, c) likewise.
        within: (r, c) likewise, candidates of the anchor's own modality, or None.
        columns: (c,) a number of each candidate, where the loss was given some.
        shares: (r, c) how much each positive counts, or None where all count alike.
    """

    scores: Tensor
    positives: Tensor
    negatives: Tensor
    within: Tensor | None
    columns: Tensor | None
    shares: Tensor | None = None


@dataclass(frozen=True)
class Costs:
    """What r anchors cost.

    Attributes:
        total: (r,) the sum of the anchor's terms.
        active: (r,) how many of them are not zero.
        possible: (r,) how many there are.
        slope: (r, c) derivatives of `total` by the scores; may be written over.
        column_slope: (r, c) derivatives of `total` by `columns`; None where there are none.
    """

    total: Tensor
    active: Tensor
    possible: Tensor
    slope: Tensor
    column_slope: Tensor | None = None


Cost = Callable[[Rows], Costs]
Counts = tuple[Tensor, Tensor, Tensor]


@dataclass(frozen=True)
class Scores:
    """Scores of a anchors and c candidates: a matrix, or vectors of whose inner products they are a function.

    Attributes:
        left: (a, c) where `right` is None, else (a, e).
        right: (c, e) or None.
        kind: what is made of the products: nothing, their positive part, or its root.
    """

    left: Tensor
    right: Tensor | None = None
    kind: Kind = "product"

    def rows(self, rows: slice) -> Tensor:
        """Give some rows of the matrix (r, c)."""
        if self.right is None:
            return self.left[rows]
        products = self.left[rows] @ self.right.T
        if self.kind == "product":
            return products
        return products.relu_() if self.kind == "squared distance" else products.relu_().add_(TINY).sqrt_()

    def of_products(self, scores: Tensor, slope: Tensor) -> Tensor:
        """Turn slopes by scores into slopes by products, in place; a distance of zero has none."""
        if self.kind != "distance":
            return slope
        return slope.div_(scores).mul_(0.5).masked_fill_(scores.square() <= 1.01 * TINY, 0)

    def blocks(self) -> list[slice]:
        """Cut the rows into blocks."""
        count, columns = len(self.left), len(self.right) if self.right is not None else self.left.shape[1]
        width = 0 if self.right is None else min(self.right.shape[1], ROWS)
        height = max(BLOCK.get(self.left.device.type, BLOCK["cpu"]) // max(columns, 1), width, 1)
        return [slice(start, min(start + height, count)) for start in range(0, max(count, 1), height)]


def scores_of(comparison: Comparison, name: Score, factor: Tensor | float = 1.0) -> Scores:
    """Lay out a score of a comparison, times a factor; one that a selection has computed is taken as it is.

    Args:
        comparison: a anchors against c candidates.
        name: a key of SCORES; a similarity is taken as it is, not with a minus sign.
        factor: of similarities.
    """
    kept = KEPT[name]
    if comparison.relevance is not None or kept in comparison.__dict__:
        return Scores(factor * getattr(comparison, kept))
    anchors, candidates = comparison.vectors(name)
    if name in ("squared-euclidean", "euclidean"):
        kind: Kind = "distance" if name == "euclidean" else "squared distance"
        return Scores(*as_products(anchors, candidates), kind)
    if name == "cosine":
        anchors, candidates = normalized(anchors), normalized(candidates)
    return Scores(factor * anchors, candidates)


def dissimilarities(comparison: Comparison, name: Score) -> Scores:
    """Lay out a score in which smaller is nearer, see SCORES."""
    lookup(SCORES, name, "score")
    return scores_of(comparison, name, 1.0 if "euclidean" in name else -1.0)


def summed(comparison: Comparison, scores: Scores, cost: Cost, columns: Tensor | None = None) -> Terms:
    """Cost the anchors of a comparison, block by block of rows.

    Args:
        comparison: whose masks these are.
        scores: of its anchors and candidates.
        cost: of some rows.
        columns: (c,) a number of each candidate, whose gradient is followed too.
    """
    inputs = scores.left, scores.right, columns
    wanted = tuple(torch.is_grad_enabled() and one is not None and one.requires_grad for one in inputs)
    total, active, possible = _applied(_Sums, *inputs, _Task(comparison, scores.kind, cost), wanted)
    return Terms(total, active, possible)


@dataclass(frozen=True)
class _Task:
    """What is the same in both passes; see `summed`."""

    comparison: Comparison
    kind: Kind
    cost: Cost

    def run(self, inputs: "_Inputs", wanted: tuple[bool, ...], weights: Tensor | None) -> tuple[Counts, "_Inputs"]:
        """Go through the blocks: totals and counts (a,), and gradients of the totals, summed with weights (a,)."""
        left, right, columns = inputs
        assert left is not None
        scores = Scores(left, right, self.kind)
        sums = [
            torch.zeros_like(one) if want and one is not None else None
            for one, want in zip(inputs, wanted, strict=True)
        ]
        found: Counts | None = None
        for rows in scores.blocks():
            values = scores.rows(rows)
            costs = self.cost(self.rows(values, rows, columns))
            parts = costs.total, costs.active, costs.possible
            if found is None:  # what stays is laid out once: small tensors kept between blocks would split the heap
                found = cast(Counts, tuple(one.new_empty(len(left)) for one in parts))
            for one, part in zip(found, parts, strict=True):
                one[rows] = part
            if any(wanted):
                self._add(sums, scores, rows, values, costs, None if weights is None else weights[rows, None])
        assert found is not None
        return found, tuple(sums)

    def rows(self, values: Tensor, rows: slice, columns: Tensor | None) -> Rows:
        """Give some rows with their scores (r, c)."""
        positives, negatives, within = (self.comparison.rows_of(mask, rows, values.dtype) for mask in MASKS)
        assert positives is not None
        assert negatives is not None
        shares = self.comparison.shares
        counted = None if shares is None else shares[rows].to(values.dtype)
        return Rows(values, positives, negatives, within, columns, counted)

    def _add(
        self,
        sums: list[Tensor | None],
        scores: Scores,
        rows: slice,
        values: Tensor,
        costs: Costs,
        weights: Tensor | None,
    ) -> None:
        """Add the gradients of a block to the sums."""
        left, right, columns = sums
        if columns is not None and costs.column_slope is not None:
            columns += (costs.column_slope if weights is None else costs.column_slope * weights).sum(0)
        slope = costs.slope if weights is None else costs.slope.mul_(weights)
        if scores.right is None:
            if left is not None:
                left[rows] = slope
            return
        slope = scores.of_products(values, slope)
        if left is not None:
            torch.mm(slope, scores.right, out=left[rows])
        if right is not None:
            right.addmm_(slope.T, scores.left[rows])


_Inputs = tuple[Tensor | None, ...]


class _Sums(torch.autograd.Function):
    """Totals, active and possible counts (a,) of left, right and columns; see `summed`."""

    @staticmethod
    def forward(
        ctx: Any, left: Tensor, right: Tensor | None, columns: Tensor | None, task: _Task, wanted: tuple[bool, ...]
    ) -> tuple[Tensor, Tensor, Tensor]:
        with torch.autocast(left.device.type, enabled=False):
            found, gradients = task.run((left, right, columns), wanted, None)
        ctx.task, ctx.wanted = task, wanted
        ctx.save_for_backward(left, right, columns, *gradients)
        ctx.mark_non_differentiable(*found[1:])
        return found

    @staticmethod
    def backward(ctx: Any, above: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        saved = ctx.saved_tensors
        with torch.no_grad(), torch.autocast(above.device.type, enabled=False):
            if _is_constant(above):
                gradients: _Inputs = tuple(None if one is None else one * above[:1].sum() for one in saved[3:])
            else:
                gradients = ctx.task.run(saved[:3], ctx.wanted, above)[1]
        return (*_once(gradients, above, saved[:3]), None, None)


def counted(values: Tensor) -> Tensor:
    """Count what is above zero by row: (r, c) -> (r,) int64."""
    return torch.gt(values, 0, out=torch.empty_like(values)).sum(1).long()


def excluding(scores: Tensor, mask: Tensor) -> Tensor:
    """Lower the scores (r, c) outside a mask of ones so far that they are no rivals."""
    return torch.add(scores, mask - 1, alpha=EXCLUDED)


def log_mean_exp_of_columns(comparison: Comparison, scores: Scores, factor: float) -> Tensor:
    """Give the log of the mean of exp(factor s_ij) over the anchors that a candidate is compared with (c,), else 0."""
    result: Tensor = _applied(_Columns, scores.left, scores.right, _Task(comparison, scores.kind, _no_cost), factor)
    return result


class _Columns(torch.autograd.Function):
    """See `log_mean_exp_of_columns`."""

    @staticmethod
    def forward(ctx: Any, left: Tensor, right: Tensor | None, task: "_Task", factor: float) -> Tensor:
        scores = Scores(left, right, task.kind)
        count = mass = left.new_zeros(len(right) if right is not None else left.shape[1])
        peak = torch.full_like(mass, -EXCLUDED)
        with torch.autocast(left.device.type, enabled=False):
            for rows in scores.blocks():
                block = task.rows(scores.rows(rows), rows, None)
                rivals = block.positives + block.negatives
                values = excluding(factor * block.scores, rivals)
                higher = torch.maximum(peak, values.amax(0))
                mass = mass * (peak - higher).exp() + values.sub_(higher).exp_().mul_(rivals).sum(0)
                count, peak = count + rivals.sum(0), higher
        result = (peak + mass.log() - count.log()).masked_fill_(count == 0, 0)
        ctx.task, ctx.factor = task, factor
        ctx.save_for_backward(left, right, result, count)
        return result

    @staticmethod
    def backward(ctx: Any, above: Tensor) -> tuple[Tensor | None, ...]:
        left, right, result, count = ctx.saved_tensors
        weight = ctx.factor * above / count.clamp_min(1)

        def cost(rows: Rows) -> Costs:
            share = (ctx.factor * rows.scores).sub_(result).exp_().mul_(rows.positives + rows.negatives)
            return replace(_no_cost(rows), slope=share.mul_(weight))

        task = _Task(ctx.task.comparison, ctx.task.kind, cost)
        wanted = (ctx.needs_input_grad[0], ctx.needs_input_grad[1], False)
        with torch.no_grad(), torch.autocast(left.device.type, enabled=False):
            gradients = task.run((left, right, None), wanted, None)[1]
        return (*_once(gradients, above, (left, right, None))[:2], None, None)


def _no_cost(rows: Rows) -> Costs:
    nothing = rows.scores.new_zeros(len(rows.scores))
    return Costs(nothing, nothing, nothing, rows.scores)


def _once(gradients: _Inputs, above: Tensor, inputs: _Inputs) -> _Inputs:
    """Give gradients whose own gradient is refused, where somebody might ask for it."""
    if not torch.is_grad_enabled():
        return gradients
    sources = [one for one in (above, *inputs) if one is not None]
    return tuple(None if one is None else _applied(_Once, one, *sources) for one in gradients)


class _Once(torch.autograd.Function):
    """A gradient that has none."""

    @staticmethod
    def forward(ctx: Any, gradient: Tensor, *sources: Tensor) -> Tensor:
        return gradient.clone()

    @staticmethod
    def backward(ctx: Any, above: Tensor) -> Tensor:
        raise RuntimeError("losses by blocks of rows have no second derivative; differentiate them once")


def _applied(function: type[torch.autograd.Function], *arguments: Any) -> Any:
    return function.apply(*arguments)


def _is_constant(above: Tensor) -> bool:
    """Say whether all anchors weigh the same, as they do where a sum or a mean of them is differentiated."""
    return above.stride() == (0,) or len(above) < 2 or bool((above == above[0]).all())
