"""Influence of test clips on MAP, as queries and as items of the gallery.

MAP is a function of weights of the clips. Clip i has weight w_i as a query, and as an item for the other queries.

    MAP(w) = sum_i w_i AP_i(w) / sum_i w_i,   AP_i(w) = sum_r w_r P_r / sum_r w_r,   P_r = H_r / T_r

H_r is the weight of the relevant items, and T_r the weight of all items, at or above the relevant item r. Tied items
count half for each other. The influence of a clip is the derivative of MAP with respect to its weight, at w = 1
(infinitesimal jackknife; Jaeckel, 1972; Efron, 1982, chapter 6). To first order, the influences determine the variance
of MAP under a bootstrap that draws clips in both roles.

Reference: Efron, The jackknife, the bootstrap and other resampling plans, SIAM 1982, https://doi.org/10.1137/1.9781611970319
"""

import numpy as np
from numpy.typing import NDArray

from aadml.comparison.relevance import Relevant
from aadml.retrieval.ranking import over_scores
from aadml.retrieval.scores import Indices, Scores, ScoreSource
from aadml.retrieval.sorted_hits import SORTED
from aadml.retrieval.ties import Values

Bound = Indices | slice
"""Positions (b, n) of the start or end of a group of ties, or without ties a slice of the cumulative sums."""

QUERIES = 1024
"""Maximum number of queries for the influence of gallery items; beyond it, evenly spaced queries are used."""


def gallery_influence(
    source: ScoreSource,
    relevant: Relevant,
    clips: tuple[Indices, Indices] | None = None,
    *,
    excluded: Indices | None = None,
) -> Values:
    """Return the derivative (n,) of the sum of the queries' AP with respect to the weight of each gallery item.

    For more than `QUERIES` queries, the derivative is estimated from evenly spaced queries.

    Args:
        source: scores of q queries against n items.
        relevant: items relevant to each query; a query without relevant items is skipped.
        clips: (q,) and (n,) number of the clip of each query and of each item; None if no item is of a query's clip.
            For a query, the weight of the items of its own clip is fixed at 1, because copies of a clip do not
            retrieve each other.
        excluded: (q,) column of the own clip that is removed from each query's ranking; None removes no items.
    """
    queries = np.flatnonzero(relevant.some)
    sampled = queries[np.linspace(0, len(queries) - 1, min(QUERIES, len(queries))).round().astype(np.int64)]
    clip_of_query, clip_of_item = clips or (np.full(source.shape[0], -1), np.arange(source.shape[1]))

    def summed(index: Indices, scores: Scores, hits: NDArray[np.bool_]) -> Values:
        clip = clip_of_query[index]
        if excluded is not None:
            scores, hits, row = scores.copy(), hits.copy(), np.arange(len(scores))
            scores[row, excluded[index]], hits[row, excluded[index]] = -np.inf, False
            some = hits.any(axis=1)
            scores, hits, clip = scores[some], hits[some], clip[some]
        return _summed_influence(scores, hits, clip, clip_of_item)

    total = np.zeros(source.shape[1])
    for part in over_scores(source, relevant, summed, rows=sampled):
        total += part
    return total * (len(queries) / max(len(sampled), 1))


def _summed_influence(scores: Scores, hits: NDArray[np.bool_], clip: Indices, clip_of_item: Indices) -> Values:
    """Return the derivative (n,) of the sum of the AP of b queries with respect to the weight of each item.

    `clip` (b,) and `clip_of_item` (n,) are the numbers of the clips of the queries and of the items.
    """
    items = scores.shape[1]
    total, step = np.zeros(items), max(1, SORTED // items)
    for first in range(0, len(scores), step):
        rows = slice(first, first + step)
        order = np.argsort(-scores[rows], axis=1)
        hit = np.take_along_axis(hits[rows], order, 1)
        change = _change(hit, *_groups(np.take_along_axis(scores[rows], order, 1)))
        change[clip_of_item[order] == clip[rows, None]] = 0
        total += np.bincount(order.ravel(), change.ravel(), items)
    return total


def _change(hit: NDArray[np.bool_], above: Values, start: Bound, end: Bound) -> Values:
    """Return the derivative (b, n) of AP with respect to the weight of each sorted position.

    Args:
        hit: (b, n) relevance of the item at each position.
        above: weight of the items at or above each position (T of a relevant item).
        start: start of the tied group that contains each position.
        end: end of this group.
    """
    count = _cumulated(hit)
    total = count[:, -1:]
    relevant = (_at(count, start) + _at(count, end) + 1) / 2
    gain = hit / above
    precision = gain * relevant
    loss = precision / above
    average = precision.sum(axis=1, keepdims=True) / total
    rise = hit * (precision - average + _below(gain, start, end) + gain / 2)
    change: Values = (rise - _below(loss, start, end) - loss / 2) / total
    return change


def _groups(values: Scores) -> tuple[Values, Bound, Bound]:
    """Return the weight of the items at or above each position, and the start and end of the tied group there.

    The scores `values` (b, n) are sorted in every row.
    """
    items = values.shape[1]
    place = np.arange(items)[None]
    new = np.ones((len(values), items + 1), dtype=bool)
    new[:, 1:-1] = values[:, 1:] != values[:, :-1]
    if new.all():
        return np.arange(1.0, items + 1)[None], slice(0, -1), slice(1, None)
    start = np.maximum.accumulate(np.where(new[:, :-1], place, 0), axis=1)
    end = np.minimum.accumulate(np.where(new[:, 1:], place + 1, items)[:, ::-1], axis=1)[:, ::-1]
    above: Values = (start + end + 1) / 2
    return above, start, end


def _cumulated(values: NDArray[np.generic]) -> Values:
    """Return the cumulative sums (b, n + 1) of values (b, n), from 0."""
    total = np.zeros((len(values), values.shape[1] + 1))
    np.cumsum(values, axis=1, out=total[:, 1:])
    return total


def _at(cumulated: Values, bound: Bound) -> Values:
    """Return the entries (b, n) of cumulative sums (b, n + 1) at a bound of each position."""
    return cumulated[:, bound] if isinstance(bound, slice) else np.take_along_axis(cumulated, bound, 1)


def _below(values: Values, start: Bound, end: Bound) -> Values:
    """Return, for each position, the sum of the values below its group of ties plus half the sum of the group."""
    total = _cumulated(values)
    return total[:, -1:] - (_at(total, start) + _at(total, end)) / 2
