"""The "running" variant of AP, computed by published code in which one line is indented too far."""

from functools import lru_cache

import numpy as np

from aadml.retrieval import ties
from aadml.retrieval.metrics import precision_sums
from aadml.retrieval.ranking import Ranking
from aadml.retrieval.scores import Indices
from aadml.retrieval.ties import Values

_CELLS = 1 << 20  # maximum size of the table of positions and hits of one group of tied items


def running_average_precision(ranking: Ranking) -> Values:
    """Compute the mean (b,) of AP@j over all ranks j = 1..N.

    AP@j is the sum of the precisions at the relevant items up to rank j, divided by the number of these items.
    Without such items, AP@j is 0. This variant is not an average precision. It favors early ranks, and its chance
    level is higher than the chance level of AP (on 189 clips of 15 classes, 0.123 instead of 0.099). Published
    evaluation code of this field computes this value, which explains some published tables. Ties count by their
    expectation. A group of n tied items, m of them relevant, takes O(n m) time. The sums of a group are cached.
    """
    sums = precision_sums(ranking)
    before, inside = np.zeros_like(sums), np.zeros_like(sums)
    for group in np.flatnonzero(ranking.size > 1):  # all ranks of the group except the last, where its sum is complete
        key = (ranking.above[group], ranking.hits_above[group], ranking.size[group], ranking.hits[group])
        inside[group], before[group] = _inside(*(int(value) for value in key))
    total = np.cumsum(sums)
    starts = ranking.offsets[:-1]
    reached = total - np.repeat(total[starts] - sums[starts], np.diff(ranking.offsets))
    end = np.append(ranking.above[1:], ranking.items)
    end[ranking.offsets[1:] - 1] = ranking.items
    ranks = end - (ranking.above + ranking.size - 1)  # from the group's last rank up to the next group
    values = ranks * reached / (ranking.hits_above + ranking.hits) + inside + before * (reached - sums)
    return ranking.per_query(values) / ranking.items


def running_by_chance(relevant: Indices, items: int) -> Values:
    """Compute the expectation (b,) of the running variant in a random order of N items, R of them relevant.

    If X > 0 of the first j items are relevant, the mean of AP@j is s + (1 - s) H_j / j with s = (X - 1) / (j - 1).
    The harmonic number H_j is 1 + 1/2 + ... + 1/j. If X is 0, AP@j is 0. The mean is linear in X for X > 0. Its
    expectation therefore requires only the expectation j R / N of X, and the probability of X > 0.

    Args:
        relevant: (b,) number R of relevant items of each query.
        items: number N of items of the gallery.
    """
    counts, query = np.unique(relevant, return_inverse=True)
    places = np.arange(1, items + 1)
    mean_reciprocal = np.cumsum(1 / places) / places
    values = []
    for count in counts:
        some = 1 - ties.no_hit(np.full_like(places, items), np.full_like(places, count), places)
        further = (places * count / items - some) / np.maximum(places - 1, 1)
        further[0] = 0.0
        values.append((further + (some - further) * mean_reciprocal).mean())
    return np.asarray(values)[query]


@lru_cache(maxsize=4096)
def _inside(above: int, hits_above: int, size: int, hits: int) -> tuple[float, float]:
    """Sum `ties.hits_normalized` over all ranks of a group of tied items except the last rank."""
    inside = before = 0.0
    step = max(1, _CELLS // (hits + 1))
    for first in range(1, size, step):
        places = np.arange(first, min(first + step, size))
        t, r, n, m = (np.full_like(places, value) for value in (above, hits_above, size, hits))
        part = ties.hits_normalized(t, r, n, m, places)
        inside, before = inside + float(part[0].sum()), before + float(part[1].sum())
    return inside, before
