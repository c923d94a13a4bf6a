"""Scores of anchors and candidates for losses by blocks of rows: a matrix, or vectors and a function of products."""

import math
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from aadml.comparison import Comparison
from aadml.comparison.autograd_functions import Gradients, applied, once_differentiable
from aadml.comparison.pairwise import TINY, full_precision, lengths, normalized
from aadml.comparison.scores import SCORES, Score
from aadml.feature_extraction.ground.registry import lookup

BLOCK = {"cpu": 1 << 17, "cuda": 1 << 25}
"""Number of scores of a block, by type of device; on a CPU a block fits the cache of a core."""
SLAB = 1 << 20
"""Number of scores of a slab."""
FEW_PRODUCTS = 4
"""Number of products per number of the candidates up to which products of wide vectors are kept, not computed twice."""
ROWS = 256
"""Minimum number of rows of a slab of vectors with at least as many dimensions."""

NARROW = 32
"""Width of vectors from which a product with the rows of a matrix is as fast by rows as by columns."""
ALIGNED, BROAD = 16, 768
"""Products with widths that are multiples of ALIGNED, or at least BROAD, are as fast by rows as by columns; others take
up to 1.3 times as long."""

WIDE = 128
"""Number of dimensions from which a product takes longer than a copy of its transpose and a sum of two gradients."""

NO_DISTANCE = (1.01 * TINY) ** 0.5
"""Largest distance of vectors that count as equal."""

Kind = Literal["product", "squared distance", "distance"]
KEPT = {"squared-euclidean": "squared_distance", "euclidean": "distance", "cosine": "cosine", "dot": "dot"}


@dataclass(frozen=True)
class Scores:
    """Scores of a anchors and c candidates: a matrix, or vectors and a function of their inner products.

    Attributes:
        left: (a, c) if `right` is None, else (a, e).
        right: (c, e) or None.
        kind: function of the products: "product" for the products themselves, "squared distance" for their positive
            part, and "distance" for the root of the positive part.
        scale: factor of the inner products.
        span: upper bound of the difference of two scores; infinity if there is no known bound.
    """

    left: Tensor
    right: Tensor | None = None
    kind: Kind = "product"
    scale: float = 1.0
    span: float = math.inf

    def products(self, rows: slice) -> Tensor:
        """Return some rows (r, c) of the scores if `right` is None, else of the inner products times `scale`."""
        if self.right is None:
            return self.left[rows]
        left = self.left if rows == slice(0, len(self.left)) else self.left[rows]
        return scaled_product(left, self.right.T, self.scale)

    def made_once(self) -> "Scores":
        """Return the scores as a matrix, for a loss that reads every product twice.

        Scores that are distances are returned unchanged. Other scores of vectors are returned unchanged if they do
        not fit in a slab and number more than FEW_PRODUCTS per value of the candidates.
        """
        if self.right is None or self.kind != "product":
            return self
        if len(self.left) * len(self.right) > max(SLAB, FEW_PRODUCTS * self.right.numel()):
            return self
        return Scores(products(self.left, self.right, self.scale), span=self.span)

    def of_products(self, products: Tensor) -> Tensor:
        """Compute scores from products, in place."""
        if self.kind == "product" or self.right is None:
            return products
        products.relu_()
        if self.kind == "squared distance":
            return products
        # compiled code needs the positive part for its gradient
        return (products + TINY if torch.compiler.is_compiling() else products.add_(TINY)).sqrt_()

    def put_gradient(self, gradient: Tensor, scores: Tensor, out: Tensor) -> None:
        """Write gradients with respect to the products to `out`, from gradients with respect to the scores.

        For the kind "distance", the gradient at distance 0 is 0. The factor 1/2 in the derivative of the root is
        not applied here, but in the property `factor`.
        """
        if self.kind == "distance" and self.right is not None:
            torch.div(gradient, torch.threshold(scores, NO_DISTANCE, torch.inf), out=out)
        elif gradient is not out:
            out.copy_(gradient)

    @property
    def factor(self) -> float:
        """Factor of the matrix products that compute the gradients of the vectors."""
        return 0.5 * self.scale if self.kind == "distance" else self.scale

    def slabs(self) -> list[slice]:
        """Divide the rows into slabs, whose products are computed together."""
        width = 0 if self.right is None else min(self.right.shape[1], ROWS)
        return _cut(slice(0, len(self.left)), max(self._height(SLAB), self._height(self._block), width))

    def blocks(self, rows: slice) -> list[slice]:
        """Divide the rows of a slab into blocks for computing losses; two blocks or fewer are joined."""
        height = self._height(self._block)
        return _cut(rows, 2 * height if rows.stop - rows.start <= 2 * height else height)

    @property
    def _block(self) -> int:
        return BLOCK.get(self.left.device.type, BLOCK["cpu"])

    def _height(self, scores: int) -> int:
        columns = len(self.right) if self.right is not None else self.left.shape[1]
        return max(scores // max(columns, 1), 1)


def products(left: Tensor, right: Tensor, scale: float = 1.0) -> Tensor:
    """Return the inner products (a, c) of vectors (a, e) and (c, e), times a factor."""
    other = right.view_as(right) if left is right else right  # compiled code cannot pass a tensor twice
    matrix: Tensor = applied(_InnerProducts, left, other, scale)
    return matrix


class _InnerProducts(torch.autograd.Function):
    """Inner products of vectors (a, e) and (c, e), times a factor, with fast gradients of narrow vectors."""

    @staticmethod
    def forward(ctx: Any, left: Tensor, right: Tensor, scale: float) -> Tensor:
        ctx.save_for_backward(left, right)
        ctx.scale = scale
        with full_precision(left):
            return Scores(left, right, scale=scale).products(slice(0, len(left)))

    @staticmethod
    def backward(ctx: Any, above: Tensor) -> tuple[Tensor | None, ...]:
        with full_precision(above):
            left, right = ctx.saved_tensors
            return (*gradients_of_products(above, left, right, ctx.needs_input_grad[:2], ctx.scale), None)


def gradients_of_products(
    above: Tensor, left: Tensor, right: Tensor, wanted: tuple[bool, ...], factor: float
) -> tuple[Tensor | None, ...]:
    """Return the gradients with respect to the vectors `left` (a, e) and `right` (c, e).

    `above` (a, c) contains the gradients with respect to `factor` times the inner products of the vectors. A
    gradient with False in `wanted` is None.
    """
    pairs = zip(((above, right), (above.T, left)), wanted, strict=False)
    return tuple(_product(*pair, factor) if want else None for pair, want in pairs)


def _product(matrix: Tensor, vectors: Tensor, factor: float) -> Tensor:
    """Return `factor` times `matrix` (a, c) times `vectors` (c, e), computed by columns where columns are faster."""
    if _by_row(vectors):
        return scaled_product(matrix, vectors, factor)
    return scaled_product(vectors.T, matrix.T, factor).T


def scaled_product(left: Tensor, right: Tensor, factor: float) -> Tensor:
    """Return `factor` times `left` (a, e) times `right` (e, c), in one pass over the product."""
    if torch.compiler.is_compiling():
        return left @ right * factor  # `torch.compile` would add 0 times the uninitialized values, which may be NaN
    return torch.addmm(left.new_empty(1, 1), left, right, beta=0, alpha=factor)


def room_of(vectors: Tensor) -> Tensor:
    """Allocate an uninitialized gradient of vectors, by columns where products by columns are faster."""
    if _by_row(vectors):
        return torch.empty_like(vectors, memory_format=torch.contiguous_format)
    return torch.empty_like(vectors.T, memory_format=torch.contiguous_format).T


def _by_row(vectors: Tensor) -> bool:
    width = vectors.shape[1]
    return width >= BROAD or (width >= NARROW and width % ALIGNED == 0)


def _cut(rows: slice, height: int) -> list[slice]:
    """Divide rows into pieces; without rows, return one empty piece."""
    starts = range(rows.start, max(rows.stop, rows.start + 1), height)
    return [slice(start, min(start + height, rows.stop)) for start in starts]


def scores_of(comparison: Comparison, name: Score, factor: Tensor | float = 1.0) -> Scores:
    """Return the scores of a comparison; similarities are multiplied by a factor.

    Scores that a selection has computed are reused.

    Args:
        comparison: a anchors against c candidates.
        name: a key of SCORES; unlike in SCORES, similarities are not negated.
        factor: factor of similarities; a tensor if the factor is learned.

    Raises:
        InputError: `name` is a distance, but the comparison has relevance scores instead of vectors.
    """
    attribute = KEPT[name]
    if comparison.relevance is not None or f"_{attribute}" in comparison.__dict__:
        return Scores(factor * getattr(comparison, attribute))
    if name in ("squared-euclidean", "euclidean"):
        kind: Kind = "distance" if name == "euclidean" else "squared distance"
        return Scores(*_as_products(*comparison.vectors(name)), kind, -2.0)
    span = 2 * abs(factor) if name == "cosine" and not isinstance(factor, Tensor) else math.inf
    shared = comparison.shared
    if shared is not None and comparison.anchors.shape[1] >= WIDE and not torch.compiler.is_compiling():
        scale = 1.0 if isinstance(factor, Tensor) else factor
        matrix = shared.of((name, scale), lambda: _both_ways(products(*_sides(comparison, name), scale)))
        return Scores(factor * matrix if isinstance(factor, Tensor) else matrix, span=span)
    anchors, candidates = _sides(comparison, name)
    if isinstance(factor, Tensor):
        return Scores(factor * anchors, candidates)
    return Scores(anchors, candidates, scale=factor, span=span)


def _both_ways(matrix: Tensor) -> tuple[Tensor, Tensor]:
    return matrix, matrix.T.contiguous()


def _sides(comparison: Comparison, name: Score) -> tuple[Tensor, Tensor]:
    """Return the vectors of anchors and candidates whose inner products are the similarity `name`."""
    anchors, candidates = comparison.vectors(name)
    return units(anchors, candidates) if name == "cosine" else (anchors, candidates)


def dissimilarities(comparison: Comparison, name: Score) -> Scores:
    """Return scores that are smaller for nearer candidates, see SCORES.

    Raises:
        InputError: the score is unknown, or is a distance for a comparison with relevance scores instead of vectors.
    """
    lookup(SCORES, name, "score")
    return scores_of(comparison, name, 1.0 if "euclidean" in name else -1.0)


def unit(vectors: Tensor) -> Tensor:
    """Normalize vectors (n, d) to length 1, with half the passes of `normalized` for the gradient.

    A vector with at most the length TINY becomes 0 and has no gradient.
    """
    normed: Tensor = normalized(vectors) if torch.compiler.is_compiling() else applied(_Units, vectors)[0]
    return normed


def units(left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    """Normalize two sets of vectors as `unit` does, with one node in the graph of gradients."""
    if torch.compiler.is_compiling():
        return normalized(left), normalized(right)
    normed: tuple[Tensor, Tensor] = applied(_Units, left, right)
    return normed


class _Units(torch.autograd.Function):
    """Normalization u = x / |x| of sets of vectors.

    The gradient for an incoming gradient g is (g - (g . u) u) / |x|.
    """

    @staticmethod
    def forward(ctx: Any, *sides: Tensor) -> tuple[Tensor, ...]:
        norms = tuple(map(lengths, sides))
        normed = tuple(map(torch.div, sides, norms))
        ctx.save_for_backward(*sides, *normed, *norms)
        return normed

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *above: Tensor) -> Gradients:
        saved, count = ctx.saved_tensors, len(above)
        parts = zip(ctx.needs_input_grad, above, saved[count : 2 * count], saved[2 * count :], strict=True)
        return tuple(gradient_of_units(*part) if wanted else None for wanted, *part in parts)


def gradient_of_units(above: Tensor, units: Tensor, length: Tensor) -> Tensor:
    """Return the gradient of vectors (n, d) from the gradient of their unit vectors; see `_Units`."""
    along = (above * units).sum(1, keepdim=True)
    return torch.addcmul(above, units, along, value=-1).div_(length)


def _as_products(anchors: Tensor, candidates: Tensor) -> tuple[Tensor, Tensor]:
    """Return vectors (a, d + 2) and (c, d + 2) whose inner products times -2 are the squared distances.

    Both sets are centered on the mean of the candidates, which changes no distance and avoids cancellation at large
    norms. Each vector has -1/2 of its squared norm and a one appended.
    """
    center = candidates.detach().mean(0) if len(candidates) else torch.zeros_like(candidates.sum(0))
    if torch.compiler.is_compiling():
        return _with_norms(anchors, center, 0), _with_norms(candidates, center, 1)
    extended: tuple[Tensor, Tensor] = applied(_WithNorms, anchors, candidates, center)
    return extended


def _with_norms(vectors: Tensor, center: Tensor, place: int) -> Tensor:
    """Subtract `center` from vectors, and append a norm term and a one: (n, d) -> (n, d + 2).

    The norm term is -1/2 of the squared norm. The norm term is last if `place` is 1, else the one is last.
    """
    centered = vectors - center
    norm = centered.square().sum(1, keepdim=True).mul(-0.5)
    ones = torch.ones_like(norm)
    return torch.cat([centered, ones, norm] if place else [centered, norm, ones], 1)


class _WithNorms(torch.autograd.Function):
    """Autograd function of `_with_norms` for anchors and candidates, with gradients in one pass."""

    @staticmethod
    def forward(ctx: Any, anchors: Tensor, candidates: Tensor, center: Tensor) -> tuple[Tensor, Tensor]:
        extended = _with_norms(anchors, center, 0), _with_norms(candidates, center, 1)
        ctx.save_for_backward(anchors, candidates, *extended)
        return extended

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *above: Tensor) -> Gradients:
        sides = zip(ctx.needs_input_grad, above, ctx.saved_tensors[2:], strict=False)
        return *(
            _gradient_with_norms(gradient, extended, place) if wanted else None
            for place, (wanted, gradient, extended) in enumerate(sides)
        ), None


def _gradient_with_norms(above: Tensor, extended: Tensor, place: int) -> Tensor:
    """Return the gradient of vectors (n, d) from the gradient of `_with_norms` (n, d + 2)."""
    width = extended.shape[1] - 2
    return torch.addcmul(above[:, :width], extended[:, :width], above[:, width + place, None], value=-1)
