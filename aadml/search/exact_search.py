"""Exact search in one modality: a fast product selects candidates, and the kernel of `aadml.retrieval` ranks them.

The error of the product in float32 has a known bound. Every item that may be among the best k, within twice the bound,
is scored again by the kernel of the evaluation. The result equals that of scoring every item by the kernel.
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
_GATHERED = 4  # vectors are gathered if at most one item in four is searched


@dataclass(frozen=True)
class Gallery:
    """Vectors of one modality, prepared for search.

    Attributes:
        vectors: (n, d) float32; items of equal score are listed in the order of the vectors.
        similarity: similarity of the vectors, by name.
    """

    vectors: Tensor
    similarity: str

    def __post_init__(self) -> None:
        if self.similarity == FRAME_WORD:
            raise InputError(
                "frame-word compares sequences, but an index holds one vector per clip; use another similarity"
            )

    def __len__(self) -> int:
        return len(self.vectors)

    def scores(self, queries: Tensor, rows: Indices | None = None) -> NDArray[np.float64]:
        """Compute the scores of items (m,) by `aadml.retrieval`, in the unit of the similarity, averaged over queries.

        Args:
            queries: (q, d), for example the sound and the picture of one clip.
            rows: (m,) items; None for all.
        """
        gallery = self.vectors if rows is None else self.vectors[torch.from_numpy(rows)]
        single = [
            score_source(query, gallery, self.similarity).block(0, 1)[0].astype(np.float64)
            * unit_of_scores(query, gallery, self.similarity)
            for query in queries[:, None]
        ]
        return np.asarray(sum(single) / len(single))

    def best(self, queries: Tensor, k: int, rows: Indices | None = None) -> tuple[Indices, NDArray[np.float64]]:
        """Return the k best items, or all if there are fewer.

        Args:
            queries: (q, d) float32; the score of an item is the mean over the queries.
            k: at least 1.
            rows: (m,) items that are searched, ascending; None for all.

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
        """Return the items that may be among the k best, ascending."""
        count = len(self) if rows is None else len(rows)
        everything = np.arange(len(self), dtype=np.int64) if rows is None else rows
        if k >= count:
            return everything
        gathered = rows if rows is not None and _GATHERED * count < len(self) else None
        with np.errstate(over="ignore", invalid="ignore"):
            fast = np.asarray(sum(self._products(query, gathered) for query in queries.numpy())) / len(queries)
            margin = max(self._error(query) for query in queries)
        fast = fast[rows] if rows is not None and gathered is None else fast
        if not (np.isfinite(margin) and np.isfinite(fast).all()):
            return everything  # some numbers exceed the range of float32
        bound = np.partition(fast, count - k)[count - k] - 2 * margin
        return np.asarray(everything[fast >= bound])

    def _products(self, query: Floats, rows: Indices | None) -> Floats:
        """Compute the scores of items (m,) in float32, up to a term that is equal for all items."""
        vectors = self._compared if rows is None else self._compared[rows]
        if self.similarity == "cosine":
            lengths = self._factors if rows is None else self._factors[rows]
            return np.asarray(vectors @ (query / (_length(query) or 1.0)).astype(np.float32) * lengths)
        if self.similarity == "euclidean":  # up to the squared length of the query
            squares = self._factors if rows is None else self._factors[rows]
            return np.asarray(vectors @ (2 * query) - squares)
        return np.asarray(vectors @ (_code(query) if self.similarity == "hamming" else query))

    def _error(self, query: Tensor) -> float:
        """Return a bound on the error of `_products` for any item; infinity if float32 allows no bound."""
        d, length = self.vectors.shape[1], _length(query.numpy())
        nonzero = self._lengths[self._lengths > 0]
        if d > 1 << 20 or not nonzero.min(initial=1) > 1e-15 or not nonzero.max(initial=1) < 1e15:
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
        """Inverse length of each vector for cosines, else its squared length."""
        if self.similarity == "cosine":
            lengths = self._lengths
            return np.divide(1, lengths, out=np.zeros_like(lengths), where=lengths > 0).astype(np.float32)
        return (self._lengths**2).astype(np.float32)


def _length(values: Floats) -> float:
    return float(np.linalg.norm(np.asarray(values, dtype=np.float64)))


def _code(values: Floats) -> NDArray[np.float32]:
    return np.where(values > 0, np.float32(1), np.float32(-1))
