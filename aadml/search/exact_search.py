"""Exact search in one modality: a fast product names the candidates, the kernel of `aadml.retrieval` ranks them.

The product is in float32 and off by no more than a bound that is known; whatever could belong to the best k within
twice that bound is scored again as every evaluation scores it. So the result is that of scoring everything.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aadml.feature_extraction.ground.errors import InputError
from aadml.retrieval.frame_word import FRAME_WORD
from aadml.retrieval.scores import Indices, score_source, unit_of_scores

Floats = NDArray[np.floating[Any]]

_ROUNDING = 2.0**-24  # the largest relative error of one operation in float32
_GATHERED = 4  # of fewer than one in so many items the vectors are gathered; else all products are taken


@dataclass(frozen=True)
class Gallery:
    """The vectors of one modality, prepared for search.

    Attributes:
        vectors: (n, d) float32, in the order in which equal scores are listed.
        similarity: by which they are compared.
    """

    vectors: Tensor
    similarity: str

    def __post_init__(self) -> None:
        if self.similarity == FRAME_WORD:
            raise InputError("frames and words: this similarity compares sequences; an index holds one vector a clip")

    def __len__(self) -> int:
        return len(self.vectors)

    def scores(self, queries: Tensor, rows: Indices | None = None) -> NDArray[np.float64]:
        """Score items as `aadml.retrieval` does, in the similarity's own unit, averaged over the queries.

        Args:
            queries: (q, d): the sound and the picture of one clip, say.
            rows: (m,) items; all by default.

        Returns:
            (m,).
        """
        gallery = self.vectors if rows is None else self.vectors[torch.from_numpy(rows)]
        single = [
            score_source(one, gallery, self.similarity).block(0, 1)[0].astype(np.float64)
            * unit_of_scores(one, gallery, self.similarity)
            for one in queries[:, None]
        ]
        return np.asarray(sum(single) / len(single))

    def best(self, queries: Tensor, k: int, rows: Indices | None = None) -> tuple[Indices, NDArray[np.float64]]:
        """Find the k best items, or all if there are fewer.

        Args:
            queries: (q, d) float32; the score of an item is the mean over them.
            k: at least 1.
            rows: (m,) the items among which to search, ascending; all by default.

        Returns:
            Rows and scores, best first; items of equal score in the order of the vectors.
        """
        rows = self._candidates(queries, k, rows)
        if not len(rows):
            return rows, np.zeros(0)
        scores = self.scores(queries, rows)
        order = np.argsort(-scores, kind="stable")[:k]
        return rows[order], scores[order]

    def _candidates(self, queries: Tensor, k: int, rows: Indices | None) -> Indices:
        """Name the items that may be among the k best, ascending."""
        count = len(self) if rows is None else len(rows)
        everything = np.arange(len(self), dtype=np.int64) if rows is None else rows
        if k >= count:
            return everything
        gathered = rows if rows is not None and _GATHERED * count < len(self) else None
        with np.errstate(over="ignore", invalid="ignore"):
            fast = np.asarray(sum(self._products(one, gathered) for one in queries.numpy())) / len(queries)
            margin = max(self._error(one) for one in queries)
        fast = fast[rows] if rows is not None and gathered is None else fast
        if not (np.isfinite(margin) and np.isfinite(fast).all()):
            return everything  # numbers beyond float32: the kernel scores them all
        bound = np.partition(fast, count - k)[count - k] - 2 * margin
        return np.asarray(everything[fast >= bound])

    def _products(self, query: Floats, rows: Indices | None) -> Floats:
        """Score items (m,) in float32, up to what is the same for all of them."""
        vectors = self._compared if rows is None else self._compared[rows]
        if self.similarity == "cosine":
            lengths = self._factors if rows is None else self._factors[rows]
            return np.asarray(vectors @ (query / (_length(query) or 1.0)).astype(np.float32) * lengths)
        if self.similarity == "euclidean":  # up to the square of the query's own length
            squares = self._factors if rows is None else self._factors[rows]
            return np.asarray(vectors @ (2 * query) - squares)
        return np.asarray(vectors @ (_code(query) if self.similarity == "hamming" else query))

    def _error(self, query: Tensor) -> float:
        """Bound the error of `_products` for any item; infinity where float32 is too narrow for a bound."""
        d, length = self.vectors.shape[1], _length(query.numpy())
        nonzero = self._lengths[self._lengths > 0]
        if d > 1 << 20 or any(not 1e-15 < one < 1e15 for one in (nonzero.min(initial=1), nonzero.max(initial=1))):
            return float("inf")
        if self.similarity == "hamming":
            return 0.0
        largest = 1.0 if self.similarity == "cosine" else length * float(nonzero.max(initial=0))
        squares = float(nonzero.max(initial=0)) ** 2 if self.similarity == "euclidean" else 0.0
        return 2 * (d + 16) * _ROUNDING * (largest + squares)

    @cached_property
    def _compared(self) -> NDArray[np.float32]:
        vectors = self.vectors.numpy()
        return _code(vectors) if self.similarity == "hamming" else vectors

    @cached_property
    def _lengths(self) -> NDArray[np.float64]:
        parts = [part.double().norm(dim=1) for part in self.vectors.split(1 << 14)]
        return np.asarray(torch.cat(parts).numpy())

    @cached_property
    def _factors(self) -> NDArray[np.float32]:
        """Give, of each vector, one over its length for cosines, the square of its length for distances."""
        if self.similarity == "cosine":
            lengths = self._lengths
            return np.divide(1, lengths, out=np.zeros_like(lengths), where=lengths > 0).astype(np.float32)
        return (self._lengths**2).astype(np.float32)


def _length(values: Floats) -> float:
    return float(np.linalg.norm(np.asarray(values, dtype=np.float64)))


def _code(values: Floats) -> NDArray[np.float32]:
    return np.where(values > 0, np.float32(1), np.float32(-1))
