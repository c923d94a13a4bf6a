"""Influence of test clips on MAP, as queries and as items of the gallery.

MAP is a function of weights of the clips. Clip i has weight w_i as a query, and as an item for the other queries.

    MAP(w) = sum_i w_i AP_i(w) / sum_i w_i,   AP_i(w) = sum_r w_r P_r / sum_r w_r,   P_r = H_r / T_r

H_r is the weight of the relevant items, and T_r the weight of all items, at or above the relevant item r. Tied items
count half for each other. The influence of a clip is the derivative of MAP by its weight at w = 1 (infinitesimal
jackknife; Jaeckel, 1972; Efron, The Jackknife, the Bootstrap and Other Resampling Plans, 1982, chapter 6). A bootstrap
that draws clips in both roles has this variance to first order.
"""

import numpy as np
from numpy.typing import NDArray

from aadml.comparison.relevance import Relevant
from aadml.retrieval.ranking import over_scores
from aadml.retrieval.scores import Indices, Scores, ScoreSource
from aadml.retrieval.ties import Values

QUERIES = 2048
"""Maximum number of queries for the influence of gallery items; of more queries, an even sample is used."""


def gallery_influence(
    source: ScoreSource, relevant: Relevant, own: Indices | None = None, *, exclude_own: bool = False
) -> Values:
    """Return the derivative (n,) of the sum of the queries' AP by the weight of each gallery item.

    Args:
        source: scores of q queries against n items.
        relevant: items relevant to each query; a query without relevant items is skipped.
        own: (q,) column of each query's own clip, -1 if absent; the weight of that item is 1 for this query, because
            copies of a clip are not found by each other.
        exclude_own: whether the own clip is removed from the ranking.
    """
    queries = np.flatnonzero(relevant.some)
    sampled = queries[np.linspace(0, len(queries) - 1, min(QUERIES, len(queries))).round().astype(np.int64)]

    def summed(index: Indices, scores: Scores, hits: NDArray[np.bool_]) -> Values:
        columns = None if own is None else own[index]
        total: Values = _influence(scores, hits, columns, exclude_own).sum(axis=0)
        return total

    total = np.zeros(source.shape[1])
    for part in over_scores(source, relevant, summed, rows=sampled):
        total += part
    return total * (len(queries) / max(len(sampled), 1))


def _influence(scores: Scores, hits: NDArray[np.bool_], own: Indices | None, exclude_own: bool) -> Values:
    """Return the derivatives (b, n) of the AP of b queries by the weights of the items."""
    if own is not None and exclude_own:
        scores, hits, rows = scores.copy(), hits.copy(), np.arange(len(scores))
        scores[rows, own], hits[rows, own] = -np.inf, False
        some = hits.any(axis=1)
        scores, hits, own = scores[some], hits[some], None
    order = np.argsort(-scores, axis=1, kind="stable")
    hit = np.take_along_axis(hits, order, 1)
    start, end = _groups(np.take_along_axis(scores, order, 1))
    count = _cumulated(hit)
    before, after = (np.take_along_axis(count, bound, 1) for bound in (start, end))
    above, relevant = (start + end + 1) / 2, (before + after + 1) / 2  # T and H of a relevant item
    gain, loss = hit / above, hit * relevant / above**2
    found = count[:, -1:]
    precision = gain * relevant
    average = precision.sum(axis=1, keepdims=True) / found
    rise = hit * (precision - average + _below(gain, start, end) + gain / 2)
    change = (rise - _below(loss, start, end) - loss / 2) / found
    result: Values = np.empty_like(change)
    np.put_along_axis(result, order, change, 1)
    if own is not None:
        known = own >= 0
        result[np.flatnonzero(known), own[known]] = 0
    return result


def _groups(values: Scores) -> tuple[Indices, Indices]:
    """Return the start and the end (b, n) of the group of equal values of each place; rows are sorted."""
    items = values.shape[1]
    place = np.broadcast_to(np.arange(items), values.shape)
    new = np.ones((len(values), items + 1), dtype=bool)
    new[:, 1:-1] = values[:, 1:] != values[:, :-1]
    start = np.maximum.accumulate(np.where(new[:, :-1], place, 0), axis=1)
    end = np.minimum.accumulate(np.where(new[:, 1:], place + 1, items)[:, ::-1], axis=1)[:, ::-1]
    return start, end


def _cumulated(values: NDArray[np.generic]) -> Values:
    """Return the cumulative sums (b, n + 1) of values (b, n), from 0."""
    return np.concatenate([np.zeros((len(values), 1)), np.cumsum(values, axis=1, dtype=np.float64)], axis=1)


def _below(values: Values, start: Indices, end: Indices) -> Values:
    """Return for each place the sum of the values below its group of ties, and half the sum of its group."""
    total = _cumulated(values)
    inside = np.take_along_axis(total, start, 1) + np.take_along_axis(total, end, 1)
    return total[:, -1:] - inside / 2
