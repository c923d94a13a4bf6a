"""Expectations over all orders of one group of tied items, in closed form (McSherry and Najork, ECIR 2008).

A group of n tied items, m of them relevant, stands below t better items, r of them relevant. In a random order of the
group its i-th place holds a relevant item with probability m / n, and then r + 1 + (i - 1) (m - 1) / (n - 1) relevant
items are expected down to there. Sums of 1 / (t + i) are differences of harmonic numbers.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from aadml.retrieval.scores import Indices

Values = NDArray[np.float64]

_SUMMED = 64  # harmonic numbers up to here are summed, above by their asymptotic series (error below 1e-17)


def harmonic_between(low: Indices, high: Indices) -> Values:
    """Sum 1 / i over low < i <= high, to the last digits however large both are."""
    table = _harmonic_numbers()
    a, b = np.maximum(low, _SUMMED).astype(np.float64), np.maximum(high, _SUMMED).astype(np.float64)
    near = table[np.minimum(high, _SUMMED)] - table[np.minimum(low, _SUMMED)]
    return np.asarray(near + np.log1p((b - a) / a) + (_series(b) - _series(a)))


@lru_cache(maxsize=1)
def _harmonic_numbers() -> Values:
    return np.concatenate([[0.0], np.cumsum(1 / np.arange(1.0, _SUMMED + 1))])


def _series(n: Values) -> Values:
    return np.asarray(1 / (2 * n) - 1 / (12 * n**2) + 1 / (120 * n**4) - 1 / (252 * n**6))


def precision_sum(above: Indices, hits_above: Indices, size: Indices, hits: Indices, places: Indices) -> Values:
    """Expected sum of the precisions at the relevant items among the first `places` of each group of tied items.

    All arguments broadcast: t, r, n, m, and how many places of the group count (at most n).
    """
    step = (hits - 1) / np.maximum(size - 1, 1)
    sums = places * step + (hits_above + 1 - step - step * above) * harmonic_between(above, above + places)
    return np.asarray(hits / size * sums)


def ordered_precision_sum(above: Indices, hits_above: Indices, hits: Indices) -> Values:
    """Sum of the precisions at `hits` relevant items in a row that follow `above` items, `hits_above` relevant."""
    return np.asarray(hits + (hits_above - above) * harmonic_between(above, above + hits))


def chance(relevant: Indices, items: int) -> Values:
    """Expected AP of a random order of N items, R relevant: (R-1)/(N-1) + (1 - (R-1)/(N-1)) H_N / N; (b,) -> (b,)."""
    nothing, everything = np.zeros_like(relevant), np.full_like(relevant, items)
    return precision_sum(nothing, nothing, everything, relevant, everything) / relevant


@lru_cache(maxsize=4096)
def reciprocal_of_first(above: int, size: int, hits: int, limit: int) -> float:
    """Expectation of one over the rank of a group's first relevant item, 0 where that is beyond `limit`."""
    last = min(size - hits + 1, limit - above)
    if last < 1:
        return 0.0
    if size == 1:
        return 1 / (above + 1)
    place = np.arange(1, last + 1)
    here = no_hit(np.full_like(place, size), np.full_like(place, hits), place - 1) * hits / (size - place + 1)
    return float((here / (above + place)).sum())


def no_hit(size: Indices, hits: Indices, places: Indices) -> Values:
    """Probability that the first `places` of a group of tied items hold no relevant one."""
    return hypergeometric(size, hits, places, np.zeros_like(places))


def hypergeometric(size: Indices, hits: Indices, places: Indices, found: Indices) -> Values:
    """Probability that the first `places` of `size` items in random order hold `found` of the `hits`; broadcasts."""
    possible = (found >= 0) & (found <= hits) & (found <= places) & (places - found <= size - hits)
    log = _log_choose(hits, found) + _log_choose(size - hits, places - found) - _log_choose(size, places)
    return np.where(possible, np.exp(np.where(possible, log, 0.0)), 0.0)


def _log_choose(n: Indices, k: Indices) -> Values:
    k = np.clip(k, 0, n)
    return np.asarray(gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0))


def hits_normalized(
    above: Indices, hits_above: Indices, size: Indices, hits: Indices, places: Indices
) -> tuple[Values, Values]:
    """Expectations of a sum of precisions divided by the number of hits so far, where a cutoff splits a tied group.

    With X the relevant items among the first `places` of the group, and P the sum of their precisions, the first is
    E[P / (r + X)], the second E[1 / (r + X)], both 0 where r + X is. Each argument is (g,).
    """
    found = np.arange(int(np.minimum(hits, places).max(initial=0)) + 1)[None, :]
    t, r, n, m, k = (values[:, None] for values in (above, hits_above, size, hits, places))
    likely = hypergeometric(n, m, k, found)
    weight = np.where(r + found > 0, likely / np.maximum(r + found, 1), 0.0)
    first = precision_sum(t, r, np.maximum(k, 1), np.minimum(found, k), k)
    return np.asarray((weight * first).sum(axis=1)), np.asarray(weight.sum(axis=1))
