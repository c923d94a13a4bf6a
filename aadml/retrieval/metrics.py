"""Metrics of rankings, each the exact expectation over all orders of tied items; one value per query, (b,)."""

from typing import Literal

import numpy as np

from aadml.retrieval import ties
from aadml.retrieval.first_ranks import FirstRanks
from aadml.retrieval.ranking import Ranking
from aadml.retrieval.scores import Indices
from aadml.retrieval.ties import Values

Normalizer = Literal["all", "min(R,k)", "hits"]


def average_precision(ranking: Ranking, *, cutoff: int | None = None) -> Values:
    """Compute AP (b,), the mean of the precisions at the ranks of all relevant items.

    With a `cutoff`, the precision counts as 0 at ranks beyond the cutoff.
    """
    if cutoff is not None:
        return average_precision_at(ranking, cutoff)
    return ranking.per_query(precision_sums(ranking)) / ranking.relevant


def average_precision_over_reachable(ranking: Ranking, *, cutoff: int) -> Values:
    """Compute AP (b,) over the first K items: the sum of precisions at relevant items, divided by min(R, K).

    R is the number of relevant items in the gallery, and K is `cutoff`. The best ranking has AP 1.
    """
    return average_precision_at(ranking, cutoff, "min(R,k)")


def average_precision_over_hits(ranking: Ranking, *, cutoff: int) -> Values:
    """Compute AP (b,) as mean precision at the hits among the first K, as in DSCMR's code; 0 without hits."""
    return average_precision_at(ranking, cutoff, "hits")


def average_precision_at_r(ranking: Ranking) -> Values:
    """Compute AP (b,) over the first R items, for queries with R relevant items.

    The mean over all queries is MAP@R (Musgrave et al., ECCV 2020).

    Reference: Musgrave et al., A metric learning reality check, ECCV 2020, https://doi.org/10.1007/978-3-030-58595-2_41
    """
    return average_precision_at(ranking, ranking.relevant)


def precision(ranking: Ranking, *, cutoff: int) -> Values:
    """Compute the number (b,) of relevant items among the first K, divided by K."""
    return hits_at(ranking, np.array([cutoff]))[:, 0] / cutoff


def recall(ranking: Ranking, *, cutoff: int) -> Values:
    """Compute the number (b,) of relevant items among the first K, divided by all relevant items of the gallery."""
    return hits_at(ranking, np.array([cutoff]))[:, 0] / ranking.relevant


def hit_rate(ranking: Ranking, *, cutoff: int) -> Values:
    """Compute the probability (b,) of a relevant item among the first K: the "recall@K" of instance retrieval."""
    return FirstRanks.of(ranking).within(np.array([cutoff]))[:, 0]


def precision_sums(ranking: Ranking, places: Indices | None = None) -> Values:
    """Return the expected sum (t,) of precisions at the relevant items of each group.

    Args:
        ranking: rankings with t groups.
        places: (t,) number of first items of each group that count; None for all.
    """
    sums = np.asarray((ranking.hits_above + 1) / (ranking.above + 1))
    if places is not None:
        sums[places == 0] = 0.0
    tied = np.flatnonzero(ranking.size > 1)
    counted = ranking.size if places is None else places
    groups = (ranking.above, ranking.hits_above, ranking.size, ranking.hits, counted)
    sums[tied] = ties.precision_sum(*(values[tied] for values in groups))
    return sums


def average_precision_bounds(ranking: Ranking) -> tuple[Values, Values]:
    """Return the lower and upper bounds of AP over all orders of tied items, each (b,).

    For the lower bound, the relevant items are last in every group of ties. For the upper bound, these items are
    first.
    """
    low = (ranking.hits_above + 1) / (ranking.above + 1)
    high = low.copy()
    tied = np.flatnonzero(ranking.size > 1)
    best, r, m = ranking.above[tied], ranking.hits_above[tied], ranking.hits[tied]
    high[tied] = ties.ordered_precision_sum(best, r, m)
    low[tied] = ties.ordered_precision_sum(best + ranking.size[tied] - m, r, m)
    return ranking.per_query(low) / ranking.relevant, ranking.per_query(high) / ranking.relevant


def average_precision_at(ranking: Ranking, cutoff: int | Indices, normalizer: Normalizer = "all") -> Values:
    """Compute AP (b,) over the first K items.

    Args:
        ranking: b queries.
        cutoff: one K for all queries, or one K per query, (b,). With "all", and with the number of relevant items
            of each query as K, the mean AP is MAP@R (Musgrave et al., ECCV 2020).
        normalizer: divisor of the sum of precisions. "all" is the number R of relevant items in the gallery.
            "min(R,k)" is the smaller of R and K, so that the best ranking has AP 1. "hits" is the number of
            relevant items among the first K, as in DSCMR's released code. With "hits", AP is 1 for a single hit at
            rank 1, and 0 without hits.
    """
    limit = np.broadcast_to(np.asarray(cutoff, dtype=np.int64), (len(ranking),))
    places = np.clip(limit[ranking.query] - ranking.above, 0, ranking.size)
    sums = precision_sums(ranking, places)
    if normalizer == "hits":
        return _per_hit(ranking, places, sums)
    best = ranking.relevant if normalizer == "all" else np.minimum(ranking.relevant, limit)
    return ranking.per_query(sums) / best


def _per_hit(ranking: Ranking, places: Indices, sums: Values) -> Values:
    complete = places == ranking.size
    total = ranking.per_query(np.where(complete, sums, 0.0))
    hits = ranking.per_query(np.where(complete, ranking.hits, 0).astype(np.float64))
    result = total / np.maximum(hits, 1)
    split = np.flatnonzero((places > 0) & ~complete)  # at most one group per query
    if len(split):
        query = ranking.query[split]
        groups = (values[split] for values in (ranking.above, ranking.hits_above, ranking.size, ranking.hits, places))
        inside, before = ties.hits_normalized(*groups)
        result[query] = inside + total[query] * before
    return np.asarray(result)


def hits_at(ranking: Ranking, cutoffs: Indices) -> Values:
    """Return the expected number (b, c) of relevant items among the first K items, for increasing cutoffs K (c,).

    Divided by K, this number is precision@K. Divided by the number of relevant items in the gallery, this number is
    recall@K.
    """
    beyond = cutoffs[-1] + 1
    slot = np.searchsorted(cutoffs, np.arange(beyond + 1))  # rank -> first cutoff that reaches it
    shape = len(ranking), len(cutoffs) + 1
    row = ranking.query * shape[1]
    begun, full = (row + slot[np.minimum(rank, beyond)] for rank in (ranking.above + 1, ranking.above + ranking.size))

    def summed(where: Indices, values: Values) -> Values:
        counts: Values = np.bincount(where, weights=values, minlength=shape[0] * shape[1]).astype(np.float64)
        return np.asarray(np.cumsum(counts.reshape(shape), axis=1)[:, :-1])

    hits = summed(full, ranking.hits.astype(np.float64))
    split = np.flatnonzero(begun < full)  # groups split by a cutoff: their hits are linear in K
    if len(split):
        slope = ranking.hits[split] / ranking.size[split]
        where, signs = np.concatenate([begun[split], full[split]]), np.repeat([1.0, -1.0], len(split))
        hits += summed(where, signs * np.tile(slope, 2)) * cutoffs
        hits -= summed(where, signs * np.tile(slope * ranking.above[split], 2))
    return hits


def reciprocal_rank(ranking: Ranking, *, cutoff: int | None = None) -> Values:
    """Compute 1 / rank (b,) of the first relevant item; 0 if this item is not among the first K."""
    first = FirstRanks.of(ranking)
    groups = np.stack([first.above, first.size, first.hits])
    distinct, index = np.unique(groups, axis=1, return_inverse=True)
    limit = ranking.items if cutoff is None else cutoff
    values = np.array([ties.reciprocal_of_first(*map(int, group), limit) for group in distinct.T])
    return np.asarray(values[index.reshape(-1)])


def ndcg(ranking: Ranking, *, cutoff: int | None = None) -> Values:
    """Compute nDCG (b,) of the first K items: sum of grade / log2(rank + 1), divided by this sum for the best order."""
    limit = ranking.items if cutoff is None else cutoff
    total = np.concatenate([[0.0], np.cumsum(1 / np.log2(np.arange(1, limit + 1) + 1))])
    begun, end = np.minimum(ranking.above, limit), np.minimum(ranking.above + ranking.size, limit)
    gained = ranking.per_query(ranking.gains / ranking.size * (total[end] - total[begun]))
    ideal = ranking.ideal[:, :limit]
    return np.asarray(gained / (ideal @ np.diff(total[: ideal.shape[1] + 1])))


def best_rank(ranking: Ranking) -> Values:
    """Compute the rank (b,), from 1, of the best relevant item."""
    return FirstRanks.of(ranking).expected
