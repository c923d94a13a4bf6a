"""Scores of queries against a gallery, block by block, the same bits however the work is cut.

Every similarity of two vectors here is an inner product of mapped vectors. Products are summed in float64 and rounded
once to the precision of the scores: scores that are equal in mathematics come out equal, whatever order a BLAS sums in,
and copies of one gallery vector always tie.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aadml.options import lookup
from feature_extraction.errors import InputError

Scores = NDArray[np.floating[Any]]
Indices = NDArray[np.int64]
Map = Callable[[Tensor], Tensor]
"""(m, d) of any float type -> (m, e) float64."""

ROWS, COLUMNS = 128, 4096  # the shape of a product; fixed, so that a score does not depend on how blocks are cut
BLOCK = 1 << 24  # scores held at a time
PRECISIONS: dict[str, np.dtype[Any]] = {"float32": np.dtype(np.float32), "float64": np.dtype(np.float64)}


def block_rows(items: int) -> int:
    """Count the queries that are scored against `items` gallery items at a time: a multiple of a product's rows."""
    rows = max(1, BLOCK // items)
    return rows // ROWS * ROWS if rows >= ROWS else 1 << (rows.bit_length() - 1)


class ScoreSource(Protocol):
    """Whatever can score queries against a gallery: two sets of vectors, a matrix made elsewhere, frames and words."""

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
        queries: (q, d).
        gallery: (n, d).
        query_map: maps rows of queries.
        gallery_map: maps rows of the gallery.
        precision: of the scores, float32 or float64.
    """

    queries: Tensor
    gallery: Tensor
    query_map: Map
    gallery_map: Map
    precision: np.dtype[Any] = PRECISIONS["float32"]

    @property
    def shape(self) -> tuple[int, int]:
        """Count queries and gallery items (q, n)."""
        return len(self.queries), len(self.gallery)

    def block(self, start: int, stop: int) -> Scores:
        """Return the scores (stop - start, n) of the queries start..stop; higher is better."""
        scores = np.empty((stop - start, len(self.gallery)), dtype=self.precision)
        target = torch.from_numpy(scores)
        rows = min(ROWS, block_rows(len(self.gallery)))
        for top in range(start - start % rows, stop, rows):
            first, last = max(top, start), min(top + rows, stop)
            mapped = self.query_map(self.queries[top : top + rows])
            for left in range(0, len(self.gallery), COLUMNS):
                products = mapped @ self.gallery_map(self.gallery[left : left + COLUMNS]).T
                target[first - start : last - start, left : left + COLUMNS] = products[first - top : last - top]
        copies, originals = self._copies
        scores[:, copies] = scores[:, originals]
        return scores

    @cached_property
    def _copies(self) -> tuple[Indices, Indices]:
        return copies(self.gallery)


def copies(vectors: Tensor) -> tuple[Indices, Indices]:
    """Find rows that repeat an earlier row: (n, d) -> their indices, and those of the first of their kind."""
    digest = np.concatenate([_digest(vectors[i : i + COLUMNS]) for i in range(0, max(len(vectors), 1), COLUMNS)])
    _, first, kind = np.unique(digest, return_index=True, return_inverse=True)
    later = np.flatnonzero(first[kind] != np.arange(len(digest)))
    earlier = first[kind[later]]
    same = np.zeros(len(later), dtype=bool)
    for i in range(0, len(later), COLUMNS):  # two rows may share a digest and not be the same
        pair = vectors[later[i : i + COLUMNS]], vectors[earlier[i : i + COLUMNS]]
        same[i : i + COLUMNS] = (pair[0] == pair[1]).all(1).numpy()
    return later[same].astype(np.int64), earlier[same].astype(np.int64)


def _digest(vectors: Tensor) -> Indices:
    bits = np.ascontiguousarray((vectors.double() + 0.0).numpy()).view(np.uint64)  # + 0.0: minus zero is zero
    odd = np.random.default_rng(0).integers(0, 2**63, bits.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    mixed = (bits ^ (bits >> np.uint64(32))) * odd
    return np.asarray((mixed ^ (mixed >> np.uint64(29))).sum(axis=1, dtype=np.uint64).view(np.int64))


def _unit(vectors: Tensor) -> Tensor:
    wide = vectors.double()
    wide = wide / _nonzero(wide.abs().amax(1, keepdim=True))  # first: squares neither overflow nor vanish
    return wide / _nonzero(wide.norm(dim=1, keepdim=True))


def _nonzero(values: Tensor) -> Tensor:
    return torch.where(values == 0, torch.ones_like(values), values)


def _power(value: float) -> float:
    """Give the power of two by which multiplying `value` leaves at most 1, without rounding anything."""
    return math.ldexp(1.0, -math.frexp(value)[1]) if value > 0 else 1.0


def _largest_norm(vectors: Tensor, center: Tensor | None = None) -> float:
    parts = (vectors[i : i + COLUMNS].double() for i in range(0, len(vectors), COLUMNS))
    return max((float((p if center is None else p - center).norm(dim=1).max()) for p in parts), default=0.0)


def cosine(queries: Tensor, gallery: Tensor) -> tuple[Map, Map]:
    """Cosine of the angle; a zero vector has cosine 0 with everything."""
    return _unit, _unit


def dot(queries: Tensor, gallery: Tensor) -> tuple[Map, Map]:
    """Inner product (of posteriors: the probability of a common class), scaled by a power of two to at most 1."""
    q, g = _power(_largest_norm(queries)), _power(_largest_norm(gallery))
    return (lambda x: x.double() * q), (lambda x: x.double() * g)


def euclidean(queries: Tensor, gallery: Tensor) -> tuple[Map, Map]:
    """Negative squared Euclidean distance, scaled by a power of two to at least -1.

    Both sets are moved by the gallery's mean first, which changes no distance and keeps small ones exact.
    """
    center = torch.stack([gallery[i : i + COLUMNS].double().sum(0) for i in range(0, len(gallery), COLUMNS)]).sum(0)
    center = center / len(gallery)
    scale = _power(max(_largest_norm(queries, center), _largest_norm(gallery, center))) / 2

    def mapped(x: Tensor, sign: float) -> Tensor:
        moved = (x.double() - center) * scale
        norm, one = moved.square().sum(1, keepdim=True), torch.ones(len(moved), 1, dtype=torch.float64)
        return torch.cat([2 * moved, -norm, -one] if sign < 0 else [moved, one, norm], 1)

    return (lambda x: mapped(x, -1.0)), (lambda x: mapped(x, 1.0))


def hamming(queries: Tensor, gallery: Tensor) -> tuple[Map, Map]:
    """Agreement of sign codes, d minus twice the Hamming distance, scaled by a power of two; a bit is `x > 0`."""
    scale = _power(float(queries.shape[1]))
    return (lambda x: (2 * (x > 0).double() - 1) * scale), (lambda x: 2 * (x > 0).double() - 1)


SIMILARITIES: dict[str, Callable[[Tensor, Tensor], tuple[Map, Map]]] = {
    "cosine": cosine,
    "dot": dot,
    "euclidean": euclidean,
    "hamming": hamming,
}


def score_source(
    queries: Tensor, gallery: Tensor, similarity: str = "cosine", *, precision: str = "float32"
) -> VectorScores:
    """Make the source of scores of two sets of vectors.

    Args:
        queries: (q, d) finite floats.
        gallery: (n, d) finite floats.
        similarity: a key of SIMILARITIES.
        precision: "float32" (ties are scores equal in float32) or "float64".

    Raises:
        InputError: NaN or infinity, different dimensions, no vectors, or an unknown name.
    """
    maps = lookup(SIMILARITIES, similarity, "similarity")
    sides = {"queries": queries, "gallery": gallery}
    for side, vectors in sides.items():
        if vectors.ndim != 2 or not vectors.numel():
            raise InputError(f"{side}: vectors of shape {tuple(vectors.shape)}; wanted (n, d) with n and d above 0")
        if not bool(torch.isfinite(vectors).all()):
            row = int((~torch.isfinite(vectors)).any(1).nonzero()[0])
            raise InputError(f"{side}: row {row} holds NaN or infinity; such vectors cannot be ranked")
    if queries.shape[1] != gallery.shape[1]:
        raise InputError(f"queries have {queries.shape[1]} dimensions, the gallery {gallery.shape[1]}; must be equal")
    q, g = (vectors.detach().cpu() for vectors in sides.values())
    return VectorScores(q, g, *maps(q, g), precision=lookup(PRECISIONS, precision, "precision of scores"))
