"""Scores of queries against a gallery, block by block, with the same bits for any size of blocks.

Every similarity is an inner product of mapped vectors. Products are summed in float64 and rounded once to the precision
of the scores. Mathematically equal scores are therefore equal for any order of summation in BLAS. Copies of a gallery
vector are always tied.
"""

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aadml.comparison.arrays import nonfinite_row
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.registry import lookup
from aadml.retrieval.frame_word import FRAME_WORD, frame_word_scores

Scores = NDArray[np.floating[Any]]
Indices = NDArray[np.int64]
Rows = Callable[[int, int], Tensor]
"""(start, stop) -> rows start..stop of a mapped set of vectors, (stop - start, e) float64."""

BLOCK = 1 << 23  # maximum number of scores per thread
ROWS = 128  # the shape of a product is fixed, so that a score does not depend on the size of blocks
TILE = 1 << 18  # maximum number of components of mapped gallery vectors in a product
COLUMNS = 1024  # maximum width of a product, so that the product stays in the cache until it is rounded
MAPPED = 1 << 22  # maximum number of components of a gallery that is mapped once instead of once per block of queries


def block_rows(items: int) -> int:
    """Return the number of queries per block for `items` gallery items: a power of two."""
    return min(ROWS, 1 << (max(1, BLOCK // items).bit_length() - 1))


class ScoreSource(Protocol):
    """Source of scores of queries against a gallery, for use in several threads."""

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of queries and gallery items (q, n)."""

    @property
    def scale(self) -> float:
        """Factor of the scores, a power of two."""

    def block(self, start: int, stop: int) -> Scores:
        """Return the scores (stop - start, n) of the queries start..stop; higher scores are better."""


@dataclass(frozen=True)
class MatrixScores:
    """Precomputed scores, (q, n) floats."""

    matrix: Scores
    scale: float = 1.0

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of queries and gallery items (q, n)."""
        return self.matrix.shape[0], self.matrix.shape[1]

    def block(self, start: int, stop: int) -> Scores:
        """Return the scores (stop - start, n) of the queries start..stop."""
        return self.matrix[start:stop]


@dataclass(frozen=True)
class VectorScores:
    """Inner products of mapped vectors.

    Attributes:
        shape: numbers of queries and gallery items (q, n).
        dimension: dimension d of the vectors before the mapping.
        queries: function that returns some of the mapped queries; see `Rows`.
        gallery: function that returns some of the mapped gallery vectors; see `Rows`.
        copies: indices (c,) of the gallery items that equal an earlier item, and indices (c,) of these earlier
            items.
        scale: factor of the scores, a power of two.
        precision: type of the scores. Scores that are equal in this type are ties.
    """

    shape: tuple[int, int]
    dimension: int
    queries: Rows
    gallery: Rows
    copies: tuple[Indices, Indices]
    scale: float
    precision: type[np.floating[Any]] = np.float32

    def block(self, start: int, stop: int) -> Scores:
        """Return the scores (stop - start, n) of the queries start..stop; higher scores are better."""
        count, items = self.shape
        rows, columns = block_rows(items), max(64, min(COLUMNS, TILE // self.dimension))
        scores = np.empty((stop - start, items), dtype=self.precision)
        target = torch.from_numpy(scores)
        for top in range(start - start % rows, stop, rows):
            first, last = max(top, start), min(top + rows, stop)
            mapped = self.queries(top, min(top + rows, count))
            for left in range(0, items, columns):
                right = min(left + columns, items)
                products = mapped @ self.gallery(left, right).T
                target[first - start : last - start, left:right] = products[first - top : last - top]
        copies, originals = self.copies
        scores[:, copies] = scores[:, originals]
        return scores


def find_copies(vectors: Tensor) -> tuple[Indices, Indices]:
    """Return the indices (c,) of rows (n, d) that equal an earlier row, and the indices (c,) of these earlier rows."""
    step = max(64, TILE // vectors.shape[1])
    digest = np.concatenate([_digest(vectors[i : i + step]) for i in range(0, len(vectors), step)])
    _, first, kind = np.unique(digest, return_index=True, return_inverse=True)
    later = np.flatnonzero(first[kind] != np.arange(len(digest)))
    earlier = first[kind[later]]
    same = np.zeros(len(later), dtype=bool)
    for i in range(0, len(later), step):  # different rows may share a digest
        pair = vectors[later[i : i + step]], vectors[earlier[i : i + step]]
        same[i : i + step] = (pair[0] == pair[1]).all(1).numpy()
    return later[same].astype(np.int64), earlier[same].astype(np.int64)


def _digest(vectors: Tensor) -> Indices:
    bits = np.ascontiguousarray((vectors.double() + 0.0).numpy()).view(np.uint64)  # + 0.0: minus zero is zero
    odd = np.random.default_rng(0).integers(0, 2**63, bits.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    mixed = (bits ^ (bits >> np.uint64(32))) * odd
    return np.asarray((mixed ^ (mixed >> np.uint64(29))).sum(axis=1, dtype=np.uint64).view(np.int64))


def cosine(queries: Tensor, gallery: Tensor) -> tuple[Rows, Rows, float]:
    """Return queries (q, d) and gallery (n, d) as `Rows` whose inner products are cosines, and the scale 1.

    The inner products of a zero vector are 0.
    """
    q, g = _nonzero(_lengths(queries)), _nonzero(_lengths(gallery))
    return (lambda a, b: queries[a:b].double() / q[a:b]), (lambda a, b: gallery[a:b].double() / g[a:b]), 1.0


def dot(queries: Tensor, gallery: Tensor) -> tuple[Rows, Rows, float]:
    """Return queries (q, d) and gallery (n, d) as `Rows` whose inner products are scaled, and this power of two.

    The absolute value of a scaled inner product is at most 1. The unscaled inner product of two posteriors is the
    probability of a common class.
    """
    q, g = _power(_lengths(queries).max()), _power(_lengths(gallery).max())
    return (lambda a, b: queries[a:b].double() * q), (lambda a, b: gallery[a:b].double() * g), q * g


def euclidean(queries: Tensor, gallery: Tensor) -> tuple[Rows, Rows, float]:
    """Return queries (q, d) and gallery (n, d) as `Rows` whose inner products are negative squared distances.

    Also return the scale of the squared distances.

    The squared distances are scaled by a power of two to at most 1. The mean of the gallery is subtracted from both
    sets. The subtraction changes no distance, and reduces the rounding errors of small distances.
    """
    center, scale = _center_and_scale(queries, gallery)

    def centered(vectors: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        scaled = (vectors.double() - center) * scale
        norms = scaled.square().sum(1, keepdim=True)
        return scaled, norms, torch.ones_like(norms)

    def query_rows(a: int, b: int) -> Tensor:
        scaled, norms, ones = centered(queries[a:b])
        return torch.cat([2 * scaled, -norms, -ones], 1)

    def gallery_rows(a: int, b: int) -> Tensor:
        scaled, norms, ones = centered(gallery[a:b])
        return torch.cat([scaled, ones, norms], 1)

    return query_rows, gallery_rows, scale * scale


def _center_and_scale(queries: Tensor, gallery: Tensor) -> tuple[Tensor, float]:
    """Return the center (d,) that `euclidean` subtracts from vectors, and the factor of the centered vectors."""
    center = torch.stack([part.double().sum(0) for part in gallery.split(ROWS)]).sum(0) / len(gallery)
    return center, _power(torch.maximum(_lengths(queries, center).max(), _lengths(gallery, center).max())) / 2


def hamming(queries: Tensor, gallery: Tensor) -> tuple[Rows, Rows, float]:
    """Return queries (q, d) and gallery (n, d) as `Rows` of sign codes, and the scale of their inner products.

    The code of a positive value is 1, and the code of any other value is -1. The inner products are d minus twice
    the Hamming distance, scaled by a power of two.
    """
    scale = _power(torch.tensor(float(queries.shape[1])))

    def query_rows(a: int, b: int) -> Tensor:
        return (2 * (queries[a:b] > 0).double() - 1) * scale

    return query_rows, (lambda a, b: 2 * (gallery[a:b] > 0).double() - 1), scale


SIMILARITIES: dict[str, Callable[[Tensor, Tensor], tuple[Rows, Rows, float]]] = {
    "cosine": cosine,
    "dot": dot,
    "euclidean": euclidean,
    "hamming": hamming,
}


def _lengths(vectors: Tensor, center: Tensor | None = None) -> Tensor:
    """Return the length (n, 1) float64 of each vector, or its distance from a center."""
    parts = []
    for part in vectors.split(max(64, TILE // vectors.shape[1])):
        wide = part.double() if center is None else part.double() - center
        peak = _nonzero(wide.abs().amax(1, keepdim=True))  # squares then neither overflow nor vanish
        parts.append((wide / peak).norm(dim=1, keepdim=True) * peak)
    return torch.cat(parts)


def _nonzero(values: Tensor) -> Tensor:
    return torch.where(values == 0, torch.ones_like(values), values)


def _power(value: Tensor) -> float:
    """Return the power of two that scales `value` to at most 1. Scaling by a power of two is exact."""
    return math.ldexp(1.0, min(-math.frexp(float(value))[1], sys.float_info.max_exp - 1))


def score_source(queries: Tensor, gallery: Tensor, similarity: str = "cosine") -> ScoreSource:
    """Return the source of the scores of two sets of vectors, or of two sets of packed sequences.

    Args:
        queries: (q, d) finite floats.
        gallery: (n, d) finite floats.
        similarity: key of SIMILARITIES, or "frame-word" for packed sequences; see `aadml.retrieval.frame_word`.

    Raises:
        InputError: an input is empty, is not a matrix, or contains NaN or infinity. Other causes: an unknown
            similarity, vectors of different dimensions, or inputs for "frame-word" other than packed frames for one
            input and packed words for the other input.
    """
    maps = lookup(SIMILARITIES | {FRAME_WORD: cosine}, similarity, "similarity")
    require_comparable(queries, gallery, similarity)
    q, g = queries.detach().cpu(), gallery.detach().cpu()
    if similarity == FRAME_WORD:
        return MatrixScores(frame_word_scores(q, g).numpy())
    query_rows, gallery_rows, scale = maps(q, g)
    if g.numel() <= MAPPED:
        mapped = gallery_rows(0, len(g))
        gallery_rows = lambda start, stop: mapped[start:stop]  # noqa: E731
    return VectorScores((len(q), len(g)), q.shape[1], query_rows, gallery_rows, copies=find_copies(g), scale=scale)


def require_comparable(queries: Tensor, gallery: Tensor, similarity: str) -> None:
    """Check the arguments of `score_source`.

    Raises:
        InputError: an input is empty, is not a matrix, or contains NaN or infinity; or vectors of different
            dimensions for a similarity other than "frame-word".
    """
    for side, vectors in {"queries": queries, "gallery": gallery}.items():
        if vectors.ndim != 2 or not vectors.numel():
            raise InputError(
                f"{side}: the vectors have shape {tuple(vectors.shape)}; "
                "pass vectors of shape (n, d), with n and d above 0"
            )
        if (row := nonfinite_row(vectors)) is not None:
            raise InputError(f"{side}: row {row} contains NaN or infinity; pass finite vectors")
    if similarity != FRAME_WORD and queries.shape[1] != gallery.shape[1]:
        raise InputError(
            f"queries have {queries.shape[1]} dimensions, but the gallery has {gallery.shape[1]}; pass vectors "
            "of the same dimension"
        )


def pair_scores(queries: Tensor, items: Tensor, similarity: str) -> NDArray[np.float64]:
    """Compute the scores of p pairs of a query and an item, in the unit of the similarity.

    `score_source` scales these scores by a power of two. The score of a pair depends only on the pair.

    Args:
        queries: (p, d) finite floats.
        items: (p, d) finite floats.
        similarity: key of SIMILARITIES.

    Returns:
        (p,) cosines, inner products, negative squared distances or inner products of sign codes, rounded to 24
        binary digits.
    """
    scores = np.empty(len(queries))
    step = max(1, TILE // queries.shape[1])
    for start in range(0, len(queries), step):
        x, y = (side[start : start + step].detach().cpu().double().numpy() for side in (queries, items))
        if similarity == "euclidean":
            x = y = x - y
        elif similarity == "hamming":
            x, y = 2.0 * (x > 0) - 1, 2.0 * (y > 0) - 1
        scores[start : start + step] = _row_products(x, y)
        if similarity == "cosine":
            lengths = np.sqrt(_row_products(x, x)) * np.sqrt(_row_products(y, y))
            scores[start : start + step] /= np.where(lengths == 0, 1, lengths)
    if similarity == "euclidean":
        scores *= -1
    fractions, exponents = np.frexp(scores)
    return np.asarray(np.ldexp(fractions.astype(np.float32).astype(np.float64), exponents))


def _row_products(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.einsum("ij,ij->i", x, y))
