"""Rankings with ties, in the form that all metrics use.

A ranking is stored as groups of equally scored items, best first. Groups without relevant items are omitted.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from aadml.comparison.relevance import Relevant
from aadml.retrieval.scores import Indices, Scores, ScoreSource, block_rows
from aadml.retrieval.sorted_hits import sorted_places

T = TypeVar("T")
CHUNK = 1 << 20  # scores ranked at a time by one thread


@dataclass(frozen=True)
class Ranking:
    """The rankings of b queries over n gallery items, as groups of tied items with at least one relevant item.

    Attributes:
        items: n, the size of the gallery.
        offsets: (b + 1,) groups of query i are offsets[i] up to offsets[i + 1], best first. Every query has a group.
        above: (t,) number of items scored better than the group.
        size: (t,) number of items in the group; 1 without ties.
        hits_above: (t,) number of relevant items scored better than the group.
        hits: (t,) number of relevant items in the group, at least 1.
        relevant: (b,) number of relevant items in the whole gallery.
        tied: (b,) number of items that share their score with another item.
        above_partner: (b,) number of items scored better than the query's own clip; None if unknown.
        grades: grades of the relevant items; None if every relevant item has grade 1.
    """

    items: int
    offsets: Indices
    above: Indices
    size: Indices
    hits_above: Indices
    hits: Indices
    relevant: Indices
    tied: Indices
    above_partner: Indices | None = None
    grades: "Grades | None" = None

    def __len__(self) -> int:
        return len(self.relevant)

    @property
    def gains(self) -> NDArray[np.float64]:
        """Sum of the grades (t,) of each group."""
        return self.hits.astype(np.float64) if self.grades is None else self.grades.gains

    @property
    def ideal(self) -> NDArray[np.float64]:
        """Grades (b, m) of all relevant items, the best first, then zeros."""
        if self.grades is not None:
            return self.grades.ideal
        most = int(self.relevant.max(initial=0))
        return (np.arange(most)[None, :] < self.relevant[:, None]).astype(np.float64)

    @classmethod
    def by_chance(cls, relevant: Indices, items: int, grades: "Grades | None" = None) -> "Ranking":
        """Return rankings of n tied items; their metrics are chance levels.

        Args:
            relevant: (b,) number of relevant items of each query.
            items: n, the size of the gallery.
            grades: grades of other rankings of the same queries; None if every relevant item has grade 1.
        """
        nothing, everything = np.zeros_like(relevant), np.full_like(relevant, items)
        tied_grades = None if grades is None else Grades(grades.ideal.sum(axis=1), grades.ideal)
        return cls(
            items, np.arange(len(relevant) + 1), nothing, everything, nothing, relevant, relevant, everything,
            grades=tied_grades,
        )  # fmt: skip

    @property
    def query(self) -> Indices:
        """Index (t,) of the query of each group."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    def per_query(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return, for each query, the sum (b,) of the values of its groups (t,)."""
        return np.add.reduceat(values, self.offsets[:-1]) if len(self) else np.zeros(0)


@dataclass(frozen=True)
class Grades:
    """Grades of the items of b rankings.

    Attributes:
        gains: (t,) sum of the grades of each group.
        ideal: (b, m) grades of all relevant items, the best first, then zeros.
        partner: (b,) grade of each query's own clip; None if unknown.
    """

    gains: NDArray[np.float64]
    ideal: NDArray[np.float64]
    partner: NDArray[np.float64] | None = None


def rank(
    scores: Scores,
    relevant: NDArray[np.bool_],
    partner: Indices | None = None,
    grades: NDArray[np.float32] | None = None,
) -> Ranking:
    """Rank the gallery for each query.

    Args:
        scores: (b, n) floats, higher for better matches. Ties are equal values, and minus zero equals zero.
        relevant: (b, n) booleans, at least one true in each row.
        partner: (b,) column of each query's own clip, which is relevant; None if unknown.
        grades: (b, n) grades, above 0 for relevant items; None if every relevant item has grade 1.

    Raises:
        InputError: a score is NaN or infinite.
    """
    count, items = scores.shape
    hits, start, size = sorted_places(scores, relevant)
    begun = np.arange(count + 1) * items
    first = np.searchsorted(hits, begun)
    tied = np.bincount(start // items, weights=size, minlength=count).astype(np.int64)
    low, high = np.searchsorted(hits, start), np.searchsorted(hits, start + size)
    some = high > low
    start, size, low, high = start[some], size[some], low[some], high[some]
    order = _first_of_groups(len(hits), low, high)
    offsets = np.searchsorted(order, first)
    above = hits[order] - np.repeat(begun[:-1], np.diff(offsets))
    sizes = inside = np.broadcast_to(np.int64(1), above.shape)
    if len(start):
        sizes, inside = sizes.copy(), inside.copy()
        group = np.searchsorted(order, low)
        above[group], sizes[group], inside[group] = start % items, size, high - low
    order -= np.repeat(first[:-1], np.diff(offsets))
    better = None
    if partner is not None:
        better = (scores > np.take_along_axis(scores, partner[:, None], axis=1)).sum(axis=1, dtype=np.int64)
    ranking = Ranking(items, offsets, above, sizes, order, inside, np.diff(first), tied, better)
    return ranking if grades is None else replace(ranking, grades=_graded(ranking, scores, grades, partner))


def _graded(ranking: Ranking, scores: Scores, grades: NDArray[np.float32], partner: Indices | None) -> Grades:
    """Return the `Grades` of a ranking, computed from the grades (b, n) of all items.

    Tied items are adjacent in the sorted scores. The sum of the grades of a group is therefore a difference of two
    cumulative sums.
    """
    values = grades.astype(np.float64)
    sorted_values = np.take_along_axis(values, np.argsort(-scores, axis=1, kind="stable"), axis=1)
    total = np.concatenate([np.zeros((len(values), 1)), np.cumsum(sorted_values, axis=1)], axis=1)
    row = ranking.query
    gains = total[row, ranking.above + ranking.size] - total[row, ranking.above]
    ideal = -np.sort(-values, axis=1)[:, : int(ranking.relevant.max(initial=0))]
    partner_grades = None if partner is None else np.take_along_axis(values, partner[:, None], axis=1)[:, 0]
    return Grades(gains, ideal, partner_grades)


def _first_of_groups(hits: int, low: Indices, high: Indices) -> Indices:
    """Return the indices (t,) of the first hit of each group of ties, and of all hits without ties.

    Group g of ties contains the hits low[g] to high[g] - 1.
    """
    later = high - low - 1
    if not later.any():
        return np.arange(hits)
    first = np.ones(hits, dtype=bool)
    first[np.repeat(low + 1 - np.cumsum(later) + later, later) + np.arange(later.sum())] = False
    return np.flatnonzero(first)


def over_rankings(
    source: ScoreSource,
    relevant: Relevant,
    measure: Callable[[Indices, Ranking], T],
    *,
    partner: Indices | None = None,
) -> Iterator[T]:
    """Yield measurements of the rankings of many queries, in blocks of bounded memory.

    Args:
        source: scores of q queries against n items.
        relevant: items relevant to each query; a query without relevant items is skipped.
        measure: function of the indices (b,) of queries and the rankings of these queries, called in several threads.
        partner: (q,) column of each query's own clip in the gallery, which must be relevant to the query.

    Yields:
        Result of `measure` for each block, in the order of the queries.

    Raises:
        InputError: a score is NaN or infinite.
    """

    def measured(index: Indices, scores: Scores, hits: NDArray[np.bool_]) -> T:
        columns = None if partner is None else partner[index]
        grades = relevant.grades(index) if relevant.graded else None
        return measure(index, rank(scores, hits, columns, grades))

    yield from over_scores(source, relevant, measured)


def over_scores(
    source: ScoreSource,
    relevant: Relevant,
    measure: Callable[[Indices, Scores, NDArray[np.bool_]], T],
    *,
    rows: Indices | None = None,
) -> Iterator[T]:
    """Yield measurements of the scores of many queries, in blocks of bounded memory.

    Args:
        source: scores of q queries against n items.
        relevant: items relevant to each query; a query without relevant items is skipped.
        measure: function of the indices (b,) of queries, their scores (b, n) and relevance (b, n), called in several
            threads.
        rows: indices of the queries to measure; None for all.

    Yields:
        Result of `measure` for each block, in the order of the queries.
    """
    queries, items = source.shape
    step = max(1, CHUNK // items)
    wanted = relevant.some if rows is None else np.isin(np.arange(queries), rows) & relevant.some
    starts = [
        start for start in range(0, queries, block_rows(items)) if wanted[start : start + block_rows(items)].any()
    ]

    def measured(start: int) -> list[T]:
        block = source.block(start, min(start + block_rows(items), queries))
        results = []
        for first in range(0, len(block), step):
            local = first + np.flatnonzero(wanted[start + first : start + min(first + step, len(block))])
            if len(local):
                scores = block[first : first + step] if len(local) == min(step, len(block) - first) else block[local]
                results.append(measure(start + local, scores, relevant.block(start + local)))
        return results

    for results in _in_threads(measured, starts):
        yield from results


def _in_threads(work: Callable[[int], T], tasks: Sequence[int]) -> Iterator[T]:
    """Yield the result of `work` for each task, computed in at most 16 parallel threads.

    If there are several threads, torch is limited to one thread in each.
    """
    count = min(torch.get_num_threads(), 16, len(tasks))
    if count <= 1:
        yield from map(work, tasks)
        return
    inside = torch.get_num_threads()
    try:
        # nested threads slow each other down; torch stores the number of threads per thread
        with ThreadPoolExecutor(count, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            yield from pool.map(work, tasks)
    finally:
        torch.set_num_threads(inside)
