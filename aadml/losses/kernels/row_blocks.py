"""Losses by blocks of rows: values and gradients in one pass, with memory for one block instead of all pairs.

A loss is a function of the rows of a score matrix. It returns the loss of each anchor and, in `gradient`, the
gradient with respect to each score. Scores of vectors are inner products or functions of inner products, so the
gradients of the vectors are two more matrix products, with the gradients of the scores.

Products are computed for a slab of rows, since products of few rows are slow. A slab is divided into blocks of
rows. Losses and their gradients are computed for a block at a time, and each block fits the cache of a core.

With only one slab of vectors and without `columns`, the forward pass stores the gradients of the products. The
backward pass multiplies these gradients with the vectors. In all other cases, the forward pass computes the
gradients of the vectors. The backward pass multiplies these gradients by the incoming gradient if all anchors have
the same incoming gradient. Otherwise, the backward pass computes the blocks a second time. Second derivatives raise
an error.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, cast

import torch
from torch import Tensor

from aadml.comparison import Comparison, Terms
from aadml.comparison.autograd_functions import Gradients, applied, once_differentiable
from aadml.comparison.pairwise import full_precision
from aadml.losses.kernels.scores import Kind, Scores, gradients_of_products, products, room_of

EXCLUDED = 1e30
"""Amount subtracted from the scores of excluded entries: more than any score, but small enough not to overflow."""
LOWEST = -78.0
"""Lower limit of exponents: the exponential vanishes beside 1, and is not denormal even when divided by thousands."""
HIGHEST = 30.0
"""Upper limit of exponents relative to a log-mean; an entry exceeds a log-mean by at most the log of the count."""


PER_BIT = math.log2(math.e)
"""Factor that converts exponents of e to exponents of 2; powers of 2 take a third of the time."""


@dataclass(frozen=True)
class Near:
    """Positives of r anchors among c candidates, as a mask of all columns or of k columns per anchor.

    Attributes:
        weights: (r, k) ones for positives, zeros for other entries. Without `columns`, k is c.
        columns: (r, k) column numbers that include all positives of each anchor; None: all columns.
    """

    weights: Tensor
    columns: Tensor | None = None

    def of(self, values: Tensor) -> Tensor:
        """Return the values (r, k) of the columns, from values (r, c)."""
        return values if self.columns is None else values.gather(1, self.columns)

    def taken(self, values: Tensor, amounts: Tensor) -> Tensor:
        """Subtract amounts (r, k) from the entries of `values` (r, c) at `columns`, in place."""
        return values.sub_(amounts) if self.columns is None else values.scatter_add_(1, self.columns, -amounts)

    def left_out(self, scores: Tensor, room: Tensor | None) -> Tensor:
        """Subtract EXCLUDED from the scores (r, c) of positives; with `columns`, in place if `room` is `scores`."""
        if self.columns is None:
            return without(scores, self.weights)
        return self.taken(scores if room is scores else scores.clone(), EXCLUDED * self.weights)


@dataclass(frozen=True)
class Rows:
    """Some rows of a comparison, with masks computed on first use.

    Attributes:
        scores: (r, c), read-only.
        comparison: the whole comparison.
        place: position of the rows in the comparison.
        columns: (c,) one number per candidate, or None if the loss needs no numbers per candidate.
        room: (r, c) buffer for the gradients, writable once the scores have been read; None without a buffer.
        span: upper bound of the difference of two scores; infinity if there is no known bound.
    """

    scores: Tensor
    comparison: Comparison
    place: slice
    columns: Tensor | None
    room: Tensor | None = None
    span: float = math.inf
    _made: dict[str, Tensor | None] = field(default_factory=dict, init=False, repr=False)

    @property
    def positives(self) -> Tensor:
        """Mask of the positives (r, c): ones and zeros, of the type of the scores."""
        return cast(Tensor, self._mask("positives"))

    @property
    def near(self) -> "Near":
        """Positives by column, if they are few, or by mask."""
        codes = self.comparison.codes_of_masks()
        few = None if codes is None else codes.few_positives(self.place, self.scores.dtype)
        return Near(self.positives) if few is None else Near(few[1], few[0])

    @property
    def negatives(self) -> Tensor:
        """Mask of the negatives (r, c): ones and zeros, of the type of the scores."""
        return cast(Tensor, self._mask("negatives"))

    @property
    def within(self) -> Tensor | None:
        """Mask (r, c) of the candidates of the anchor's own modality; None if the comparison has no such mask."""
        return self._mask("within")

    @property
    def whole(self) -> bool:
        """Whether every pair is known to be a positive or a negative."""
        return self.comparison.codes_of_all_pairs() is not None

    @property
    def rivals(self) -> Tensor | None:
        """Mask of the positives and negatives (r, c); None if it would cover every pair."""
        return None if self.whole else self.positives + self.negatives

    @property
    def has_negatives(self) -> Tensor:
        """Indicators (r,) of the anchors that have negatives: ones and zeros."""
        if not self.whole:
            return self.negatives.sum(1).clamp_max(1)
        return self.positives.shape[1] - self.positives.sum(1).clamp_min(self.positives.shape[1] - 1)

    @property
    def pairs(self) -> Tensor:
        """Number (r,) of positives and negatives of each anchor."""
        if self.whole:
            return self.scores.new_full((len(self.scores),), self.scores.shape[1], dtype=torch.int64)
        return ones(self.positives) + ones(self.negatives)

    def either(self, of_positives: Tensor, of_negatives: Tensor) -> Tensor:
        """Return `of_positives` (r, c) for positives, `of_negatives` (r, c) for negatives, and 0 for other pairs.

        `of_negatives` is overwritten.
        """
        if self.whole:
            return of_negatives.lerp_(of_positives, self.positives)
        return of_negatives.mul_(self.negatives).addcmul_(self.positives, of_positives)

    @property
    def shares(self) -> Tensor | None:
        """Shares (r, c) of the positives, or None if all shares are equal."""
        shares = self.comparison.shares
        return None if shares is None else shares[self.place].to(self.scores.dtype)

    def _mask(self, name: str) -> Tensor | None:
        if name not in self._made:  # torch.compile cannot follow the lock of a `cached_property` (Python 3.11)
            self._made[name] = self.comparison.rows_of(name, self.place, self.scores.dtype)
        return self._made[name]


@dataclass(frozen=True)
class Costs:
    """Losses of r anchors.

    Attributes:
        total: (r,) sums of the terms of an anchor.
        active: (r,) numbers of nonzero terms, of any numeric type.
        possible: (r,) numbers of terms, of any numeric type.
        gradient: (r, c) derivatives of `total` with respect to the scores; may be overwritten.
        column_gradient: (r, c) derivatives of `total` with respect to `Rows.columns`; None without `Rows.columns`.
    """

    total: Tensor
    active: Tensor
    possible: Tensor
    gradient: Tensor
    column_gradient: Tensor | None = None


Cost = Callable[[Rows], Costs]
Counts = tuple[Tensor, Tensor, Tensor]


def summed(comparison: Comparison, scores: Scores, cost: Cost, columns: Tensor | None = None) -> Terms:
    """Compute the terms of the anchors of a comparison, in blocks of rows.

    Args:
        comparison: comparison with the masks.
        scores: scores of all anchors and candidates.
        cost: function that computes the losses of some rows.
        columns: (c,) one number per candidate; these numbers also receive gradients. None if `cost` does not need
            them.
    """
    if torch.compiler.is_compiling():  # the compiler fuses the passes, so blocks have no advantage
        every = slice(0, len(scores.left))
        left, right = scores.left, scores.right
        values = scores.of_products(left if right is None else products(left, right, scores.scale))
        detached = None if columns is None else columns.detach()
        costs = cost(Rows(values.detach(), comparison, every, detached, span=scores.span))
        total = applied(_Known, values, columns, costs.total, costs.gradient, costs.column_gradient)
        return Terms(total, costs.active.long(), costs.possible.long())
    inputs = scores.left, scores.right, columns
    wanted = tuple(torch.is_grad_enabled() and tensor is not None and tensor.requires_grad for tensor in inputs)
    total, active, possible = applied(_Sums, *inputs, _BlockTask.of(comparison, scores, cost), wanted)
    return Terms(total, active, possible)


@dataclass(frozen=True)
class _BlockTask:
    """Arguments shared by the forward and the backward pass; see `summed`."""

    comparison: Comparison
    kind: Kind
    scale: float
    span: float
    cost: Cost

    @classmethod
    def of(cls, comparison: Comparison, scores: Scores, cost: Cost) -> "_BlockTask":
        return cls(comparison, scores.kind, scores.scale, scores.span, cost)

    def scores(self, left: Tensor, right: Tensor | None) -> Scores:
        return Scores(left, right, self.kind, self.scale, self.span)

    def run(
        self, inputs: "_Inputs", wanted: tuple[bool, ...], weights: Tensor | None, *, keep: bool = False
    ) -> tuple[Counts, "Gradients", Tensor | None]:
        """Compute totals (a,), counts (a,) of active and possible terms, and gradients, in blocks of rows.

        The gradients are the derivatives of the sum of the totals, with `weights` (a,) as factors of the totals.
        The derivatives are with respect to `inputs`. With `keep`, for vectors in a single slab and without
        `columns`, the derivatives with respect to the products (a, c) are returned instead.
        """
        left, right, columns = inputs
        scores = self.scores(left, right)
        slabs = scores.slabs()
        single = keep and right is not None and columns is None and len(slabs) == 1
        starts: tuple[Callable[[Tensor], Tensor], ...] = room_of, room_of, torch.zeros_like
        sums = [
            None if tensor is None or not want or single else start(tensor)
            for tensor, want, start in zip(inputs, wanted, starts, strict=True)
        ]
        every, counts = slice(0, len(left)), None
        for slab in slabs:
            products = scores.products(slab)
            for rows in scores.blocks(slab):
                values = scores.of_products(products[rows.start - slab.start : rows.stop - slab.start])
                room = values if right is not None and self.kind == "product" else None
                costs = self.cost(Rows(values, self.comparison, rows, columns, room, self.span))
                counts = _filled(counts, costs, rows, every)
                if any(wanted):
                    gradient = _weighed(sums, costs, None if weights is None else weights[rows, None])
                    if right is None:
                        sums[0] = _put(sums[0], gradient, rows)
                    elif rows == every and self.kind == "product":
                        products = gradient
                    else:
                        scores.put_gradient(gradient, values, values)
            if right is not None and not single:
                _add(sums, scores, slab, products)
        return cast(Counts, counts), tuple(sums), products if single and any(wanted) else None

    def multiplied(
        self, left: Tensor, right: Tensor, wanted: tuple[bool, ...], score_gradients: Tensor, above: Tensor
    ) -> "Gradients":
        """Return the gradients of the vectors from the gradients (a, c) of the totals with respect to all products.

        The totals are weighted by `above` (a,).
        """
        factor = self.scores(left, right).factor
        if above.stride() != (0,):
            return (*gradients_of_products(score_gradients * above[:, None], left, right, wanted, factor), None)
        products, weight = gradients_of_products(score_gradients, left, right, wanted, factor), above[:1].sum()
        return (*(None if part is None else part.mul_(weight) for part in products), None)


def _filled(counts: Counts | None, costs: Costs, rows: slice, every: slice) -> Counts:
    """Return the totals and counts of all anchors, with those of a block of rows filled in."""
    parts = costs.total, costs.active, costs.possible
    if rows == every:
        return parts[0], parts[1].long(), parts[2].long()
    if counts is None:  # small tensors between blocks would fragment the heap
        counts = parts[0].new_empty(every.stop), *parts[0].new_empty(2, every.stop, dtype=torch.int64)
    for target, part in zip(counts, parts, strict=True):
        target[rows] = part
    return counts


def _put(matrix: Tensor | None, gradient: Tensor, rows: slice) -> Tensor | None:
    """Write the gradients of a block into the rows `rows` of a matrix (a, c), and return the matrix.

    If the block has all rows, return the gradients of the block instead. Without a matrix, return None.
    """
    if matrix is None or len(gradient) == len(matrix):
        return None if matrix is None else gradient
    matrix[rows] = gradient
    return matrix


def _weighed(sums: list[Tensor | None], costs: Costs, weights: Tensor | None) -> Tensor:
    """Return the weighted gradients of a block, and add the weighted gradients per candidate to `sums[2]`."""
    columns = sums[2]
    if columns is not None and costs.column_gradient is not None:
        columns += (costs.column_gradient if weights is None else costs.column_gradient * weights).sum(0)
    return costs.gradient if weights is None else costs.gradient.mul_(weights)


def _add(sums: list[Tensor | None], scores: Scores, rows: slice, score_gradients: Tensor) -> None:
    """Compute the gradients of the vectors from the gradients of a slab's products, and add the results to `sums`."""
    left, right, _ = sums
    if left is not None:
        left[rows].addmm_(score_gradients, cast(Tensor, scores.right), beta=0, alpha=scores.factor)
    if right is not None:
        right.addmm_(score_gradients.T, scores.left[rows], beta=0 if rows.start == 0 else 1, alpha=scores.factor)


_Inputs = tuple[Tensor, Tensor | None, Tensor | None]
"""`left`, `right` and `columns` of `summed`."""


class _Sums(torch.autograd.Function):
    """Autograd function of totals and counts (a,), with gradients to `left`, `right` and `columns`; see `summed`."""

    @staticmethod
    def forward(
        ctx: Any, left: Tensor, right: Tensor | None, columns: Tensor | None, task: _BlockTask, wanted: tuple[bool, ...]
    ) -> tuple[Tensor, Tensor, Tensor]:
        with full_precision(left):
            counts, gradients, score_gradients = task.run((left, right, columns), wanted, None, keep=True)
        ctx.task, ctx.wanted = task, wanted
        ctx.save_for_backward(left, right, columns, score_gradients, *gradients)
        ctx.mark_non_differentiable(*counts[1:])
        ctx.set_materialize_grads(False)  # the counts have none
        return counts

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, above: Tensor | None, *_: None) -> Gradients:
        if above is None:
            return (None,) * 5
        saved = ctx.saved_tensors  # checkpointing permits one read
        *inputs, score_gradients = saved[:4]
        with full_precision(above):
            if score_gradients is not None:
                gradients: Gradients = ctx.task.multiplied(*inputs[:2], ctx.wanted, score_gradients, above)
            elif _is_constant(above):
                gradients = tuple(None if part is None else part * above[:1].sum() for part in saved[4:])
            else:
                gradients = ctx.task.run(tuple(inputs), ctx.wanted, above)[1]
        return *gradients, None, None


class _Known(torch.autograd.Function):
    """Totals (a,) whose gradients with respect to the scores (a, c) and to `columns` (c,) have been computed."""

    @staticmethod
    def forward(
        ctx: Any, scores: Tensor, columns: Tensor | None, total: Tensor, gradient: Tensor, by_column: Tensor | None
    ) -> Tensor:
        ctx.save_for_backward(gradient, by_column)
        return total.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, above: Tensor) -> Gradients:
        gradient, by_column = ctx.saved_tensors
        above = above[:, None]
        return gradient * above, None if by_column is None else (by_column * above).sum(0), None, None, None


def counted(values: Tensor) -> Tensor:
    """Return the number of values other than zero in each row of `values` (r, c), as a tensor (r,) int64."""
    return torch.ne(values, 0, out=torch.empty_like(values)).sum(1).long()


def ones(mask: Tensor) -> Tensor:
    """Return the number of ones in each row of a mask (r, c), as a tensor (r,) int64."""
    return mask.sum(1).long()


def without(scores: Tensor, outside: Tensor) -> Tensor:
    """Subtract EXCLUDED from the scores (r, c) of the entries marked in `outside`, so that they are not rivals."""
    return torch.sub(scores, outside, alpha=EXCLUDED)


def exp_of_falls(values: Tensor, span: float = math.inf) -> Tensor:
    """Replace every value by its exponential, in place; all values must be from -`span` to 0.

    Values below LOWEST are first raised to LOWEST, which avoids slow underflow.
    """
    return (values if span <= -LOWEST else values.clamp_min_(LOWEST)).mul_(PER_BIT).exp2_()


def exp_over_mean(values: Tensor) -> Tensor:
    """Replace numbers by their exponentials, in place; the log of a mean exponential was subtracted from each number.

    Exponentials of entries that the mean includes are at most the number of these entries. All others are only kept
    finite, so that a mask can set them to 0.
    """
    return values.clamp_max_(HIGHEST).mul_(PER_BIT).exp2_()


def log_mean_exp_of_columns(comparison: Comparison, scores: Scores, factor: float) -> Tensor:
    """Return the log of the mean of exp(factor s_ij) over the anchors i of each candidate j, as a tensor (c,).

    s_ij is the score of a pair. An anchor counts if the pair is a positive or a negative. The result of a candidate
    without such anchors is 0.
    """
    result: Tensor = applied(_Columns, scores.left, scores.right, _BlockTask.of(comparison, scores, _no_cost), factor)
    return result


class _Columns(torch.autograd.Function):
    """Autograd function of `log_mean_exp_of_columns`."""

    @staticmethod
    def forward(ctx: Any, left: Tensor, right: Tensor | None, task: "_BlockTask", factor: float) -> Tensor:
        scores = task.scores(left, right)
        count = mass = left.new_zeros(len(right) if right is not None else left.shape[1])
        peak = torch.full_like(mass, -EXCLUDED)
        with full_precision(left):
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
    @once_differentiable
    def backward(ctx: Any, above: Tensor) -> Gradients:
        left, right, result, count = ctx.saved_tensors
        weight = ctx.factor * above / count.clamp_min(1)

        def cost(rows: Rows) -> Costs:
            share = exp_over_mean((ctx.factor * rows.scores).sub_(result)).mul_(weight)
            return replace(_no_cost(rows), gradient=share if rows.rivals is None else share.mul_(rows.rivals))

        task = replace(ctx.task, cost=cost)
        wanted = (ctx.needs_input_grad[0], ctx.needs_input_grad[1], False)
        with full_precision(left):
            gradients = task.run((left, right, None), wanted, None)[1]
        return *gradients[:2], None, None


def _no_cost(rows: Rows) -> Costs:
    nothing = rows.scores.new_zeros(len(rows.scores))
    return Costs(nothing, nothing, nothing, rows.scores)


def _is_constant(above: Tensor) -> bool:
    """Return whether all anchors have the same weight, as in the gradient of a sum or a mean."""
    return above.stride() == (0,) or len(above) < 2 or bool((above == above[0]).all())
