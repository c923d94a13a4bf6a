"""Losses by blocks of rows: values and gradients in one pass, in memory for a block of rows instead of all pairs.

A loss is a cost of the rows of a score matrix: it says what each anchor costs and, in `slope`, how that changes with
each score. Scores of vectors are inner products, or functions of them, so the vectors' gradients are two more products,
with the slopes. Products are made of a slab of rows, as they are slow for few rows; costs and slopes of a block of its
rows at a time, which stays in a core's cache. Where all rows are one slab, its slopes are kept and the backward pass
multiplies them out. Where they are more, the forward does, and the backward pass multiplies the gradients by what comes
from above; where that differs from anchor to anchor, it goes through the blocks once more. A gradient of a gradient is
refused.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, cast

import torch
from torch import Tensor

from aadml.comparison import Comparison, Terms
from aadml.losses.kernels.scores import Kind, Scores

EXCLUDED = 1e30
"""What is subtracted from scores that are to be no rivals: more than any score, less than what could overflow."""
LOWEST = -78.0
"""Where exponents end: the exponential is nothing beside a one, and no denormal number, even divided by thousands."""
HIGHEST = 30.0
"""Where exponents over a mean end: beside it no entry of the mean is further up than the log of how many there are."""


@dataclass(frozen=True)
class Rows:
    """Some rows of a comparison; masks are made when they are asked for.

    Attributes:
        scores: (r, c), to be read alone.
        comparison: the whole.
        place: which of its rows these are.
        columns: (c,) a number of each candidate, where the loss was given some.
        room: (r, c) where slopes may be written once the scores have been read; None: anywhere else.
    """

    scores: Tensor
    comparison: Comparison
    place: slice
    columns: Tensor | None
    room: Tensor | None = None
    _made: dict[str, Tensor | None] = field(default_factory=dict, init=False, repr=False)

    @property
    def positives(self) -> Tensor:
        """(r, c) ones and zeros, of the type of the scores."""
        return cast(Tensor, self._mask("positives"))

    @property
    def negatives(self) -> Tensor:
        """(r, c) likewise."""
        return cast(Tensor, self._mask("negatives"))

    @property
    def within(self) -> Tensor | None:
        """(r, c) likewise, candidates of the anchor's own modality, or None."""
        return self._mask("within")

    @property
    def whole(self) -> bool:
        """Whether every pair is known to be a positive or a negative."""
        return self.comparison.covers_all_pairs()

    @property
    def rivals(self) -> Tensor | None:
        """(r, c) ones and zeros, positives and negatives; None where every pair is one of them."""
        return None if self.whole else self.positives + self.negatives

    @property
    def has_negatives(self) -> Tensor:
        """(r,) ones and zeros, whether an anchor has negatives."""
        if not self.whole:
            return self.negatives.sum(1).clamp_max(1)
        return self.positives.shape[1] - self.positives.sum(1).clamp_min(self.positives.shape[1] - 1)

    @property
    def shares(self) -> Tensor | None:
        """(r, c) how much each positive counts, or None where all count alike."""
        shares = self.comparison.shares
        return None if shares is None else shares[self.place].to(self.scores.dtype)

    def _mask(self, name: str) -> Tensor | None:
        if name not in self._made:  # torch.compile cannot follow the lock of a `cached_property` (Python 3.11)
            self._made[name] = self.comparison.rows_of(name, self.place, self.scores.dtype)
        return self._made[name]


@dataclass(frozen=True)
class Costs:
    """What r anchors cost.

    Attributes:
        total: (r,) the sum of the anchor's terms.
        active: (r,) how many of them are not zero, in any type of number.
        possible: (r,) how many there are, likewise.
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


def summed(comparison: Comparison, scores: Scores, cost: Cost, columns: Tensor | None = None) -> Terms:
    """Cost the anchors of a comparison, block by block of rows.

    Args:
        comparison: whose masks these are.
        scores: of its anchors and candidates.
        cost: of some rows.
        columns: (c,) a number of each candidate, whose gradient is followed too.
    """
    if torch.compiler.is_compiling():  # the compiler fuses the passes, so that blocks gain nothing
        costs = cost(Rows(scores.of_products(scores.products(slice(None))), comparison, slice(None), columns))
        return Terms(costs.total, costs.active.long(), costs.possible.long())
    inputs = scores.left, scores.right, columns
    wanted = tuple(torch.is_grad_enabled() and tensor is not None and tensor.requires_grad for tensor in inputs)
    total, active, possible = _applied(_Sums, *inputs, _BlockTask(comparison, scores.kind, scores.scale, cost), wanted)
    return Terms(total, active, possible)


@dataclass(frozen=True)
class _BlockTask:
    """Arguments shared by both passes; see `summed`."""

    comparison: Comparison
    kind: Kind
    scale: float
    cost: Cost

    def scores(self, left: Tensor, right: Tensor | None) -> Scores:
        return Scores(left, right, self.kind, self.scale)

    def run(
        self, inputs: "_Inputs", wanted: tuple[bool, ...], weights: Tensor | None, *, keep: bool = False
    ) -> tuple[Counts, "_Inputs", Tensor | None]:
        """Compute totals and counts (a,) by blocks, and gradients of the totals weighted by `weights` (a,).

        With `keep` and a single slab, its gradients by products (a, c) are returned instead of the gradients.
        """
        left, right, columns = inputs
        assert left is not None
        scores = self.scores(left, right)
        slabs = scores.slabs()
        single = keep and right is not None and columns is None and len(slabs) == 1
        sums = [
            None if tensor is None or not want or single else torch.zeros_like(tensor)
            for tensor, want in zip(inputs, wanted, strict=True)
        ]
        active, possible = (torch.empty(len(left), dtype=torch.int64, device=left.device) for _ in range(2))
        counts = left.new_empty(len(left)), active, possible
        for slab in slabs:
            products = scores.products(slab)
            for rows in scores.blocks(slab):
                values = scores.of_products(products[rows.start - slab.start : rows.stop - slab.start])
                room = values if right is not None and self.kind == "product" else None
                costs = self.cost(Rows(values, self.comparison, rows, columns, room))
                for target, part in zip(counts, (costs.total, costs.active, costs.possible), strict=True):
                    target[rows] = part  # small tensors between blocks would fragment the heap
                if any(wanted):
                    slope = _weighed(sums, costs, None if weights is None else weights[rows, None])
                    out = values if right is not None else sums[0]
                    if out is not None:
                        scores.put_slope(slope, values, out if out is values else out[rows])
            if right is not None and not single:
                _add(sums, scores, slab, products)
        return counts, tuple(sums), products if single and any(wanted) else None

    def multiplied(self, inputs: "_Inputs", wanted: tuple[bool, ...], slopes: Tensor, above: Tensor) -> "_Inputs":
        """Return gradients of totals weighted by `above` (a,), from the gradients by products of all rows (a, c)."""
        left, right, _ = inputs
        assert left is not None
        assert right is not None
        factor, zero = self.scores(left, right).factor, left.new_zeros(1, 1)
        if above.device.type == "cpu" and _is_constant(above):
            factor *= float(above[:1].sum())
        else:
            slopes = slopes * above[:, None]
        pairs = zip(wanted, ((slopes, right), (slopes.T, left)), strict=False)
        return (*(torch.addmm(zero, *pair, beta=0, alpha=factor) if want else None for want, pair in pairs), None)


def _weighed(sums: list[Tensor | None], costs: Costs, weights: Tensor | None) -> Tensor:
    """Return the weighted gradients of a block; gradients by columns are added to their sum."""
    columns = sums[2]
    if columns is not None and costs.column_slope is not None:
        columns += (costs.column_slope if weights is None else costs.column_slope * weights).sum(0)
    return costs.slope if weights is None else costs.slope.mul_(weights)


def _add(sums: list[Tensor | None], scores: Scores, rows: slice, slopes: Tensor) -> None:
    """Add the gradients of a slab, given its gradients by products, to the sums."""
    left, right, _ = sums
    if left is not None:
        left[rows].addmm_(slopes, cast(Tensor, scores.right), beta=0, alpha=scores.factor)
    if right is not None:
        right.addmm_(slopes.T, scores.left[rows], beta=0 if rows.start == 0 else 1, alpha=scores.factor)


_Inputs = tuple[Tensor | None, ...]


class _Sums(torch.autograd.Function):
    """Totals, active and possible counts (a,) of left, right and columns; see `summed`."""

    @staticmethod
    def forward(
        ctx: Any, left: Tensor, right: Tensor | None, columns: Tensor | None, task: _BlockTask, wanted: tuple[bool, ...]
    ) -> tuple[Tensor, Tensor, Tensor]:
        with torch.autocast(left.device.type, enabled=False):
            counts, gradients, slopes = task.run((left, right, columns), wanted, None, keep=True)
        ctx.task, ctx.wanted = task, wanted
        ctx.save_for_backward(left, right, columns, slopes, *gradients)
        ctx.mark_non_differentiable(*counts[1:])
        return counts

    @staticmethod
    def backward(ctx: Any, above: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        *inputs, slopes = ctx.saved_tensors[:4]
        with torch.no_grad(), torch.autocast(above.device.type, enabled=False):
            if slopes is not None:
                gradients: _Inputs = ctx.task.multiplied(tuple(inputs), ctx.wanted, slopes, above)
            elif _is_constant(above):
                gradients = tuple(None if part is None else part * above[:1].sum() for part in ctx.saved_tensors[4:])
            else:
                gradients = ctx.task.run(tuple(inputs), ctx.wanted, above)[1]
        return (*_once(gradients, above, tuple(inputs)), None, None)


def counted(values: Tensor) -> Tensor:
    """Count what is above zero by row: (r, c) -> (r,) int64."""
    return torch.gt(values, 0, out=torch.empty_like(values)).sum(1).long()


def ones(mask: Tensor) -> Tensor:
    """Count the ones of a mask by row: (r, c) -> (r,) int64."""
    return mask.sum(1).long()


def without(scores: Tensor, outside: Tensor) -> Tensor:
    """Lower the scores (r, c) of masked entries so far that they are not rivals."""
    return torch.sub(scores, outside, alpha=EXCLUDED)


def exp_of_falls(values: Tensor) -> Tensor:
    """Turn numbers that are not above 0 into their exponentials, in place; those that underflow would take long."""
    return values.clamp_min_(LOWEST).exp_()


def exp_over_mean(values: Tensor) -> Tensor:
    """Turn exponents less the log of their mean exponential into exponentials, in place.

    What takes part in the mean is at most as large as the mean has entries; of what does not, which may be any number,
    nothing is left but that it is finite, as its mask wants.
    """
    return values.clamp_max_(HIGHEST).exp_()


def log_mean_exp_of_columns(comparison: Comparison, scores: Scores, factor: float) -> Tensor:
    """Return the log of the mean of exp(factor s_ij) over the anchors compared with a candidate (c,), else 0."""
    result: Tensor = _applied(
        _Columns, scores.left, scores.right, _BlockTask(comparison, scores.kind, scores.scale, _no_cost), factor
    )
    return result


class _Columns(torch.autograd.Function):
    """See `log_mean_exp_of_columns`."""

    @staticmethod
    def forward(ctx: Any, left: Tensor, right: Tensor | None, task: "_BlockTask", factor: float) -> Tensor:
        scores = task.scores(left, right)
        count = mass = left.new_zeros(len(right) if right is not None else left.shape[1])
        peak = torch.full_like(mass, -EXCLUDED)
        with torch.autocast(left.device.type, enabled=False):
            for rows in (block for slab in scores.slabs() for block in scores.blocks(slab)):
                block = Rows(scores.of_products(scores.products(rows)), task.comparison, rows, None)
                rivals = block.rivals
                values = factor * block.scores
                values = values if rivals is None else without(values, 1 - rivals)
                higher = torch.maximum(peak, values.amax(0)) if len(values) else peak
                parts = exp_of_falls(values.sub_(higher))
                mass = mass * (peak - higher).exp() + (parts if rivals is None else parts.mul_(rivals)).sum(0)
                count, peak = count + (len(values) if rivals is None else rivals.sum(0)), higher
        result = (peak + mass.log() - count.log()).masked_fill_(count == 0, 0)
        ctx.task, ctx.factor = task, factor
        ctx.save_for_backward(left, right, result, count)
        return result

    @staticmethod
    def backward(ctx: Any, above: Tensor) -> tuple[Tensor | None, ...]:
        left, right, result, count = ctx.saved_tensors
        weight = ctx.factor * above / count.clamp_min(1)

        def cost(rows: Rows) -> Costs:
            share = exp_over_mean((ctx.factor * rows.scores).sub_(result)).mul_(weight)
            return replace(_no_cost(rows), slope=share if rows.rivals is None else share.mul_(rows.rivals))

        task = replace(ctx.task, cost=cost)
        wanted = (ctx.needs_input_grad[0], ctx.needs_input_grad[1], False)
        with torch.no_grad(), torch.autocast(left.device.type, enabled=False):
            gradients = task.run((left, right, None), wanted, None)[1]
        return (*_once(gradients, above, (left, right, None))[:2], None, None)


def _no_cost(rows: Rows) -> Costs:
    nothing = rows.scores.new_zeros(len(rows.scores))
    return Costs(nothing, nothing, nothing, rows.scores)


def _once(gradients: _Inputs, above: Tensor, inputs: _Inputs) -> _Inputs:
    """Return gradients that raise an error when differentiated again."""
    if not torch.is_grad_enabled():
        return gradients
    sources = [tensor for tensor in (above, *inputs) if tensor is not None]
    return tuple(None if tensor is None else _applied(_Once, tensor, *sources) for tensor in gradients)


class _Once(torch.autograd.Function):
    """Gradient without a derivative."""

    @staticmethod
    def forward(ctx: Any, gradient: Tensor, *sources: Tensor) -> Tensor:
        return gradient.clone()

    @staticmethod
    def backward(ctx: Any, above: Tensor) -> Tensor:
        raise RuntimeError("losses by blocks of rows have no second derivative; differentiate them once")


def _applied(function: type[torch.autograd.Function], *arguments: Any) -> Any:
    return function.apply(*arguments)


def _is_constant(above: Tensor) -> bool:
    """True if all anchors have the same weight, as in the gradient of a sum or a mean."""
    return above.stride() == (0,) or len(above) < 2 or bool((above == above[0]).all())
