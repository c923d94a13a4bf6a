"""Exact search in one modality: a fast product selects candidates, and the scores of `aadml.retrieval` rank them.

The error of the product has a known bound. An item is a candidate unless its product is below the k-th largest product
by more than twice the bound. The scores of the candidates are computed in float64. The result equals the result of an
exhaustive search in float64.

For three or more blocks of queries, cosines are first computed in bfloat16 where the processor does so faster than in
float32. A query with too many candidates is compared again in float32. If this happens to most queries of a block, the
other blocks are compared in float32 alone.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aadml.feature_extraction.ground.errors import InputError
from aadml.retrieval.frame_word import FRAME_WORD
from aadml.retrieval.posteriors import second_keys
from aadml.retrieval.scores import Indices, pair_scores

Floats = NDArray[np.floating[Any]]
Hidden = Callable[[int], NDArray[np.bool_]]
"""Number of a query -> whether each item (n,) is excluded from the results."""

Excluded = NDArray[np.bool_] | None

_ROUNDING = 2.0**-24  # the largest relative error of one operation in float32
_PRODUCTS, _PAIRS, _BLOCK = 1 << 26, 1 << 16, 64  # largest numbers of scores, of results and of queries in a block
_GROUP = 64  # items of a group, whose largest score bounds the k-th largest score from below


@dataclass(frozen=True)
class Gallery:
    """Vectors of one modality, prepared for search.

    Attributes:
        vectors: (n, d) float32.
        similarity: similarity of the vectors, by name.

    Raises:
        InputError: the similarity is frame-word, which compares sequences.
    """

    vectors: Tensor
    similarity: str

    def __post_init__(self) -> None:
        if self.similarity == FRAME_WORD:
            raise InputError(
                "frame-word compares sequences, but an index stores one vector per clip; use another similarity"
            )

    def __len__(self) -> int:
        return len(self.vectors)

    def only(self, rows: Indices) -> "Gallery":
        """Return a gallery of the items `rows` (m,), with a contiguous copy of their vectors."""
        part = Gallery(torch.from_numpy(self.vectors.numpy().take(rows, axis=0)), self.similarity)
        part.__dict__.update(_range=self._range, _factors=self._factors[rows])  # cached properties
        return part

    def scores(self, queries: Tensor) -> NDArray[np.float64]:
        """Compute the scores (n,) of the items in the unit of the similarity, averaged over queries.

        Args:
            queries: (q, d), for example the sound and the picture of one clip.
        """
        return self._scores(queries[None], np.zeros(len(self), dtype=np.int64), np.arange(len(self)))

    def best(self, queries: Tensor, k: int) -> tuple[Indices, NDArray[np.float64]]:
        """Return the k best items, or all items of a gallery with fewer than k items.

        Args:
            queries: (q, d) float32. The score of an item is the mean over the queries.
            k: at least 1.

        Returns:
            Rows (m,) and scores (m,) of the best items, best first, with m = min(k, n). Items of equal score are
            ordered by second key, then by row. The function `second_keys` computes the second keys.

        Raises:
            InputError: a query contains NaN or infinity.
        """
        return next(self.best_of_each(queries[None], k))

    def best_of_each(
        self, queries: Tensor, k: int, hidden: Hidden | None = None
    ) -> Iterator[tuple[Indices, NDArray[np.float64]]]:
        """Yield the rows and scores of `best` for each of b queries.

        Args:
            queries: (b, q, d) float32.
            k: at least 1.
            hidden: function from the number of a query to (n,) booleans, true for excluded items; None excludes no
                item.

        Raises:
            InputError: a query contains NaN or infinity.
        """
        if not np.isfinite(queries.numpy()).all():
            raise InputError("the query contains NaN or infinity; pass finite vectors")
        step = max(1, min(_BLOCK, len(queries), _PRODUCTS // max(1, len(self)), _PAIRS // k))
        starts = range(0, len(queries), step)
        rounded = self._rounded if len(starts) > 2 and self._may_be_rounded else None
        room = np.empty((step, len(self)), dtype=np.float32)
        for start in starts:
            block = queries[start : start + step]
            excluded = [None if hidden is None else hidden(start + number) for number in range(len(block))]
            chosen, repeated = self._candidates(block, k, excluded, room, rounded)
            rounded = None if 2 * repeated > len(block) else rounded
            counts = [len(rows) for rows in chosen]
            rows, numbers = np.concatenate(chosen), np.repeat(np.arange(len(block)), counts)
            scores = self._scores(block, numbers, rows)
            for query, end, count in zip(block, np.cumsum(counts), counts, strict=True):
                part = slice(end - count, end)
                best = self._order(query, rows[part], scores[part])[:k]
                yield rows[part][best], scores[part][best]

    def _order(self, queries: Tensor, rows: Indices, scores: NDArray[np.float64]) -> Indices:
        """Return the order of items (p,) by their scores, then by their second keys (`second_keys`), then by row."""
        order = np.argsort(-scores, kind="stable")
        if len(np.unique(scores)) == len(scores):
            return order
        keys = second_keys(queries, self.vectors[torch.from_numpy(rows)], self.similarity)
        return order if keys is None else np.lexsort((-keys, -scores))

    def _scores(self, queries: Tensor, numbers: Indices, rows: Indices) -> NDArray[np.float64]:
        """Compute the scores (p,) of p pairs: query `numbers[i]` with item `rows[i]`."""
        items, pairs = (
            torch.from_numpy(v.numpy().take(p, axis=0)) for v, p in ((self.vectors, rows), (queries, numbers))
        )
        single = [pair_scores(query, items, self.similarity) for query in pairs.unbind(1)]
        return np.asarray(sum(single) / len(single))

    def _candidates(
        self, queries: Tensor, k: int, excluded: list[Excluded], room: Floats, rounded: tuple[Tensor, float] | None
    ) -> tuple[list[Indices], int]:
        """Return rows that contain the k best items of each of b queries, in ascending order.

        Also return the number of queries that were compared again.

        Args:
            queries: (b, q, d) float32.
            k: at least 1.
            excluded: for each query, booleans (n,) that are true for excluded items, or None.
            room: buffer (at least b, n) float32 for products.
            rounded: `_rounded`, to compare in bfloat16 first. A query with too many candidates is then compared again
                in float32.
        """
        values = (_code(queries) if self.similarity == "hamming" else queries).numpy()
        lengths = np.linalg.norm(values.astype(np.float64), axis=2)
        if self.similarity == "cosine":
            values = (values / np.where(lengths == 0, 1, lengths)[:, :, None]).astype(np.float32)
        total, errors = values.sum(axis=1), self._errors(lengths)
        chosen: dict[int, Indices] = {}
        if rounded:
            vectors, error = rounded
            short = torch.from_numpy(total).bfloat16()
            lost = np.linalg.norm(total - short.float().numpy(), axis=1) * (1 + error)
            lost += np.linalg.norm(total, axis=1) * (error + 2.0**-8)
            products = (row.float().numpy() for row in short @ vectors.T)
            parts = map(_largest, products, repeat(k), errors + 1.01 * lost, excluded)
            chosen = {number: rows for number, rows in enumerate(parts) if len(rows) <= 10 * k + len(self) // 1000}
        waiting = [number for number in range(len(queries)) if number not in chosen]
        for number, row in zip(waiting, self._products(total[waiting], queries.shape[1], room), strict=True):
            chosen[number] = _largest(row, k, errors[number], excluded[number])
        return [chosen[number] for number in range(len(queries))], len(waiting) if rounded else 0

    def _products(self, values: Floats, count: int, room: Floats) -> Floats:
        """Compute the scores (b, n) of items up to a factor and a term that are equal for all items.

        Args:
            values: (b, d), each the sum of `count` queries.
            count: number of queries in a sum.
            room: buffer (at least b, n) for the scores.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            products = np.matmul(values, self._compared.T, out=room[: len(values)])
            if self.similarity == "cosine":
                products *= self._factors
            elif self.similarity == "euclidean":  # half of the negative squared distance
                products -= count * self._factors
        return products

    def _errors(self, lengths: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the error bound (b,) of `_products` for query vectors with norms `lengths` (b, q).

        The bound is infinite if float32 allows no bound.
        """
        smallest, largest = self._range
        if self.vectors.shape[1] > 1 << 20 or not smallest > 1e-15 or not largest < 1e15:
            return np.full(len(lengths), np.inf)
        if self.similarity == "hamming":
            return np.zeros(len(lengths))
        sizes = np.ones_like(lengths)
        if self.similarity != "cosine":
            sizes = lengths * largest + (largest**2 if self.similarity == "euclidean" else 0.0)
            sizes[(lengths > 1e15) | (lengths < 1e-15) & (lengths > 0)] = np.inf
        return np.asarray(2 * (self.vectors.shape[1] + 16) * _ROUNDING * sizes.sum(axis=1))

    @cached_property
    def _compared(self) -> NDArray[np.float32]:
        return np.asarray((_code(self.vectors) if self.similarity == "hamming" else self.vectors).numpy())

    @property
    def _may_be_rounded(self) -> bool:
        """Whether bfloat16 is tried: for cosines, on a processor with instructions for it, as known to torch 2.13."""
        known = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
        return self.similarity == "cosine" and bool(known.get("avx512_bf16"))

    @cached_property
    def _rounded(self) -> tuple[Tensor, float]:
        """Unit vectors (n, d) in bfloat16, and the largest norm of a rounding error."""
        rounded, largest = torch.empty_like(self.vectors, dtype=torch.bfloat16), 0.0
        for start in range(0, len(self), 1 << 14):
            rows = slice(start, start + (1 << 14))
            unit = self.vectors[rows] * torch.from_numpy(self._factors[rows, None])
            rounded[rows] = unit
            largest = max(largest, float((unit - rounded[rows]).norm(dim=1).max()))
        return rounded, largest

    @cached_property
    def _lengths(self) -> NDArray[np.float64]:
        parts = [part.double().norm(dim=1) for part in self.vectors.split(1 << 14)]
        return np.asarray(torch.cat(parts).numpy())

    @cached_property
    def _range(self) -> tuple[float, float]:
        """Minimum of 1 and all nonzero norms, and maximum of all norms; (1, 0) without nonzero vectors."""
        nonzero = self._lengths[self._lengths > 0]
        return float(nonzero.min(initial=1)), float(nonzero.max(initial=0))

    @cached_property
    def _factors(self) -> NDArray[np.float32]:
        """Inverse norm of each vector for cosines (0 for a zero vector), else half the squared norm."""
        if self.similarity == "cosine":
            lengths = self._lengths
            return np.divide(1, lengths, out=np.zeros_like(lengths), where=lengths > 0).astype(np.float32)
        with np.errstate(over="ignore"):
            return (self._lengths**2 / 2).astype(np.float32)


def _largest(values: Floats, k: int, margin: float, hidden: Excluded) -> Indices:
    """Return the ascending indices of the k largest values, and of other values that may belong to them.

    Excluded values are left out first. For at most k remaining values, or an infinite margin, the indices of all
    remaining values are returned.

    Args:
        values: (n,) float32.
        k: at least 1.
        margin: bound on the error of a value.
        hidden: (n,) whether a value is excluded; None excludes no value.
    """
    shown = len(values) if hidden is None else len(values) - int(hidden.sum())
    if k >= shown or not np.isfinite(margin):
        return np.arange(len(values)) if hidden is None else np.flatnonzero(~hidden)
    if hidden is not None:
        values = np.where(hidden, np.float32(-np.inf), values)
    groups, high = len(values) // _GROUP, values
    if groups > 2 * k:  # k groups reach a value, so k values reach it
        high = values[: groups * _GROUP].reshape(_GROUP, groups).max(axis=0)
    bound = np.float32(np.partition(high, len(high) - k)[len(high) - k] - 2 * margin)
    rows = np.flatnonzero(values >= np.nextafter(bound, np.float32(-np.inf)))
    return rows if hidden is None else rows[~hidden[rows]]


def _code(values: Tensor) -> Tensor:
    return 2.0 * (values > 0) - 1.0
