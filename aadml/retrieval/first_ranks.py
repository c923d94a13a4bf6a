"""Ranks of the best relevant items: means and medians over queries and over all orders of tied items."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from aadml.retrieval import ties
from aadml.retrieval.ranking import Ranking
from aadml.retrieval.scores import Indices
from aadml.retrieval.ties import Values

_ROUNDING = 1e-9  # rounding error of a mean of probabilities


@dataclass(frozen=True)
class FirstRanks:
    """The group of tied items that contains the best relevant item, for each of q queries.

    Attributes:
        above: (q,) number of items scored better than the group.
        size: (q,) number of items in the group; 1 without ties.
        hits: (q,) number of relevant items in the group.
    """

    above: Indices
    size: Indices
    hits: Indices

    @classmethod
    def of(cls, ranking: Ranking) -> "FirstRanks":
        """Return, for each ranking, the first group with a relevant item."""
        first = ranking.offsets[:-1]
        return cls(ranking.above[first], ranking.size[first], ranking.hits[first])

    @classmethod
    def joined(cls, parts: Sequence["FirstRanks"]) -> "FirstRanks":
        """Concatenate the queries of several parts."""
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("above", "size", "hits")))

    @property
    def expected(self) -> Values:
        """Expected rank (q,) of the best relevant item, from 1."""
        return np.asarray(self.above + (self.size + 1) / (self.hits + 1))

    def within(self, cutoffs: Indices) -> Values:
        """Return the probability (q, c) of a relevant item among the first K items, for cutoffs K (c,)."""
        size, hits = self.size[:, None], self.hits[:, None]
        places = np.clip(cutoffs - self.above[:, None], 0, size)
        rate: Values = (places > size - hits).astype(np.float64)
        row, column = np.nonzero((places > 0) & (rate == 0))
        rate[row, column] = 1 - ties.no_hit(self.size[row], self.hits[row], places[row, column])
        return rate

    @property
    def median(self) -> float:
        """Median rank over queries and orders of ties: the middle rank, or the mean of the two middle ranks."""
        return (self._first_above(0.5 - _ROUNDING) + self._first_above(0.5 + _ROUNDING)) / 2

    def _first_above(self, share: float) -> int:
        """Return the smallest k at which the mean of `within` over all queries is above `share`."""
        low, high = 1, int((self.above + self.size - self.hits).max()) + 1
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self.within(np.array([middle])).mean() > share else (middle + 1, high)
        return low
