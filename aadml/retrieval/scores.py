"""Scores of queries against a gallery, block by block, the same bits however the work is cut.

Every similarity of two vectors here is an inner product of mapped vectors. Products are summed in float64 and rounded
once to the precision of the scores: scores that are equal in mathematics come out equal, whatever order a BLAS sums in,
and copies of one gallery vector always tie.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aadml.comparison.arrays import all_finite
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.registry import lookup
from aadml.retrieval.frame_word import FRAME_WORD, frame_word_scores

Scores = NDArray[np.floating[Any]]
Indices = NDArray[np.int64]
Rows = Callable[[int, int], Tensor]
"""(start, stop) -> those rows of a mapped set of vectors, (stop - start, e) float64."""

BLOCK = 1 << 23  # scores that one thread holds at a time
ROWS = 128  # the shape of a product is fixed, so that a score does not depend on how the work is cut
TILE = 1 << 18  # components of mapped gallery vectors at a time
COLUMNS = 1024  # of such a product at most, so that it lies in a core's cache until it is rounded
MAPPED = 1 << 22  # components of a gallery that is mapped once, not once for every block of queries
PRECISIONS: dict[str, np.dtype[Any]] = {"float32": np.dtype(np.float32), "float64": np.dtype(np.float64)}


def block_rows(items: int) -> int:
    """Count the queries that are scored against `items` gallery items at a time: a power of two."""
    return min(ROWS, 1 << (max(1, BLOCK // items).bit_length() - 1))


class ScoreSource(Protocol):
    """Whatever can score queries against a gallery: two sets of vectors, a matrix made elsewhere, frames and words.

    Several threads ask for blocks at a time.
    """

    @property
    def shape(self) -> tuple[int, int]:
        """Count queries and gallery items (q, n)."""

    def block(self, start: int, stop: int) -> Scores:
        """Return the scores (stop - start, n) of the queries start..stop; higher is better."""


@dataclass(frozen=True)
class MatrixScores:
    """Scores made elsewhere, (q, n) floats."""

    matrix: Scores

    @property
    def shape(self) -> tuple[int, int]:
        """Count queries and gallery items (q, n)."""
        return self.matrix.shape[0], self.matrix.shape[1]

    def block(self, start: int, stop: int) -> Scores:
        """Return the rows start..stop."""
        return self.matrix[start:stop]


@dataclass(frozen=True)
class VectorScores:
    """Inner products of mapped vectors.

    Attributes:
        shape: counts of queries and gallery items (q, n).
        dimension: d, of the vectors.
        queries: the mapped queries.
        gallery: the mapped gallery.
        copies: gallery items that repeat an earlier one, and the first of their kind.
        precision: of the scores, float32 or float64.
    """

    shape: tuple[int, int]
    dimension: int
    queries: Rows
    gallery: Rows
    copies: tuple[Indices, Indices]
    precision: np.dtype[Any] = PRECISIONS["float32"]

    def block(self, start: int, stop: int) -> Scores:
        """Return the scores (stop - start, n) of the queries start..stop; higher is better."""
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
    """Find rows that repeat an earlier row: (n, d) -> their indices, and those of the first of their kind."""
    step = max(64, TILE // vectors.shape[1])
    digest = np.concatenate([_digest(vectors[i : i + step]) for i in range(0, len(vectors), step)])
    _, first, kind = np.unique(digest, return_index=True, return_inverse=True)
    later = np.flatnonzero(first[kind] != np.arange(len(digest)))
    earlier = first[kind[later]]
    same = np.zeros(len(later), dtype=bool)
    for i in range(0, len(later), step):  # two rows may share a digest and not be the same
        pair = vectors[later[i : i + step]], vectors[earlier[i : i + step]]
        same[i : i + step] = (pair[0] == pair[1]).all(1).numpy()
    return later[same].astype(np.int64), earlier[same].astype(np.int64)


def _digest(vectors: Tensor) -> Indices:
    bits = np.ascontiguousarray((vectors.double() + 0.0).numpy()).view(np.uint64)  # + 0.0: minus zero is zero
    odd = np.random.default_rng(0).integers(0, 2**63, bits.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    mixed = (bits ^ (bits >> np.uint64(32))) * odd
    return np.asarray((mixed ^ (mixed >> np.uint64(29))).sum(axis=1, dtype=np.uint64).view(np.int64))


def cosine(queries: Tensor, gallery: Tensor) -> tuple[Rows, Rows]:
    """Cosine of the angle; a zero vector has cosine 0 with everything."""
    q, g = _norms(queries), _norms(gallery)
    return (lambda a, b: queries[a:b].double() / q[a:b]), (lambda a, b: gallery[a:b].double() / g[a:b])


def dot(queries: Tensor, gallery: Tensor) -> tuple[Rows, Rows]:
    """Inner product (of posteriors: the probability of a common class), scaled by a power of two to at most 1."""
    q, g = _power(_lengths(queries).max()), _power(_lengths(gallery).max())
    return (lambda a, b: queries[a:b].double() * q), (lambda a, b: gallery[a:b].double() * g)


def euclidean(queries: Tensor, gallery: Tensor) -> tuple[Rows, Rows]:
    """Negative squared Euclidean distance, scaled by a power of two to at least -1.

    Both sets are moved by the gallery's mean first, which changes no distance and keeps small ones exact.
    """
    center, scale = _moved_and_scaled(queries, gallery)

    def moved(vectors: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        inside = (vectors.double() - center) * scale
        norms = inside.square().sum(1, keepdim=True)
        return inside, norms, torch.ones_like(norms)

    def query_rows(a: int, b: int) -> Tensor:
        inside, norms, ones = moved(queries[a:b])
        return torch.cat([2 * inside, -norms, -ones], 1)

    def gallery_rows(a: int, b: int) -> Tensor:
        inside, norms, ones = moved(gallery[a:b])
        return torch.cat([inside, ones, norms], 1)

    return query_rows, gallery_rows


def _moved_and_scaled(queries: Tensor, gallery: Tensor) -> tuple[Tensor, float]:
    """Give what `euclidean` takes away from vectors (d,), and what it multiplies them by."""
    center = torch.stack([part.double().sum(0) for part in gallery.split(ROWS)]).sum(0) / len(gallery)
    return center, _power(torch.maximum(_lengths(queries, center).max(), _lengths(gallery, center).max())) / 2


def hamming(queries: Tensor, gallery: Tensor) -> tuple[Rows, Rows]:
    """Agreement of sign codes, d minus twice the Hamming distance, scaled by a power of two; a bit is `x > 0`."""
    scale = _power(torch.tensor(float(queries.shape[1])))

    def query_rows(a: int, b: int) -> Tensor:
        return (2 * (queries[a:b] > 0).double() - 1) * scale

    return query_rows, (lambda a, b: 2 * (gallery[a:b] > 0).double() - 1)


SIMILARITIES: dict[str, Callable[[Tensor, Tensor], tuple[Rows, Rows]]] = {
    "cosine": cosine,
    "dot": dot,
    "euclidean": euclidean,
    "hamming": hamming,
}


def _norms(vectors: Tensor) -> Tensor:
    """Give the length (n, 1) float64 of each vector, and 1 in place of 0."""
    return _nonzero(_lengths(vectors))


def _lengths(vectors: Tensor, center: Tensor | None = None) -> Tensor:
    """Give the length (n, 1) float64 of each vector, from a center if given."""
    parts = []
    for part in vectors.split(max(64, TILE // vectors.shape[1])):
        wide = part.double() if center is None else part.double() - center
        peak = _nonzero(wide.abs().amax(1, keepdim=True))  # squares then neither overflow nor vanish
        parts.append((wide / peak).norm(dim=1, keepdim=True) * peak)
    return torch.cat(parts)


def _nonzero(values: Tensor) -> Tensor:
    return torch.where(values == 0, torch.ones_like(values), values)


def _power(value: Tensor) -> float:
    """Give the power of two by which multiplying `value` leaves at most 1, without rounding anything."""
    return math.ldexp(1.0, -math.frexp(float(value))[1])


def score_source(
    queries: Tensor, gallery: Tensor, similarity: str = "cosine", *, precision: str = "float32"
) -> ScoreSource:
    """Make the source of scores of two sets of vectors, or of packed sequences (`frame-word`).

    Args:
        queries: (q, d) finite floats.
        gallery: (n, d) finite floats.
        similarity: a key of SIMILARITIES, or "frame-word" for rows of `aadml.retrieval.frame_word`.
        precision: "float32" (ties are scores equal in float32) or "float64".

    Raises:
        InputError: NaN or infinity, different dimensions, no vectors, or an unknown name.
    """
    maps = lookup(SIMILARITIES | {FRAME_WORD: cosine}, similarity, "similarity")
    sides = {"queries": queries, "gallery": gallery}
    for side, vectors in sides.items():
        if vectors.ndim != 2 or not vectors.numel():
            raise InputError(f"{side}: vectors of shape {tuple(vectors.shape)}; wanted (n, d) with n and d above 0")
        if not all_finite(vectors):
            row = int((~torch.isfinite(vectors)).any(1).nonzero()[0])
            raise InputError(f"{side}: row {row} holds NaN or infinity; such vectors cannot be ranked")
    if similarity == FRAME_WORD:
        return MatrixScores(frame_word_scores(queries.detach().cpu(), gallery.detach().cpu()).numpy())
    if queries.shape[1] != gallery.shape[1]:
        raise InputError(f"queries have {queries.shape[1]} dimensions, the gallery {gallery.shape[1]}; must be equal")
    q, g = (vectors.detach().cpu() for vectors in sides.values())
    kind = lookup(PRECISIONS, precision, "precision of scores")
    asked, offered = maps(q, g)
    if g.numel() <= MAPPED:
        offered = _once(offered, len(g))
    return VectorScores((len(q), len(g)), q.shape[1], asked, offered, copies=find_copies(g), precision=kind)


def _once(rows: Rows, count: int) -> Rows:
    """Map all of a small set at once, and give its rows from there."""
    mapped = rows(0, count)
    return lambda start, stop: mapped[start:stop]


def unit_of_scores(queries: Tensor, gallery: Tensor, similarity: str) -> float:
    """Give the power of two by which scores of these sets become what the similarity means.

    A score of `score_source` times this is a cosine, an inner product, a negative squared distance, or the agreement of
    two codes, whatever other queries and gallery items there are.

    Args:
        queries: (q, d) finite floats.
        gallery: (n, d) finite floats.
        similarity: a key of SIMILARITIES.
    """
    if similarity == "dot":
        return 1 / (_power(_lengths(queries).max()) * _power(_lengths(gallery).max()))
    if similarity == "euclidean":
        return 1 / _moved_and_scaled(queries, gallery)[1] ** 2
    return 1 / _power(torch.tensor(float(queries.shape[1]))) if similarity == "hamming" else 1.0
