"""Expectations over all orders of one group of tied items, in closed form (McSherry and Najork, ECIR 2008).

A group of n tied items, m of them relevant, is below t better items, r of them relevant. In a random order of the
group, the i-th item is relevant with probability m / n. If it is relevant, r + 1 + (i - 1) (m - 1) / (n - 1) relevant
items are expected up to this item. Sums of 1 / (t + i) are differences of harmonic numbers.

Reference: McSherry and Najork, Computing information retrieval performance measures efficiently in the presence of tied
scores, ECIR 2008, https://doi.org/10.1007/978-3-540-78646-7_38
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from aadml.retrieval.scores import Indices

Values = NDArray[np.float64]

_SUMMED = 64  # harmonic numbers are summed up to this bound; above, they are asymptotic series (error below 1e-17)


def harmonic_between(low: Indices, high: Indices) -> Values:
    """Compute the sum of 1 / i over low < i <= high, for each pair of entries of `low` (g,) and `high` (g,).

    The sum is accurate for large bounds too.
    """
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
    """Compute the expected sum of precisions at the relevant items among the first `places` of each group of ties.

    All arguments have shape (g,), or broadcast to this shape.

    Args:
        above: number t of better items.
        hits_above: number r of relevant items among the better items.
        size: number n of items of the group.
        hits: number m of relevant items of the group.
        places: number of first items of the group that count, at most n.
    """
    step = (hits - 1) / np.maximum(size - 1, 1)
    sums = places * step + (hits_above + 1 - step - step * above) * harmonic_between(above, above + places)
    return np.asarray(hits / size * sums)


def ordered_precision_sum(above: Indices, hits_above: Indices, hits: Indices) -> Values:
    """Compute the sum of precisions at consecutive relevant items, for each group (g,).

    Args:
        above: number (g,) of items above the first of these relevant items.
        hits_above: number (g,) of relevant items among the items above.
        hits: number (g,) of consecutive relevant items.
    """
    return np.asarray(hits + (hits_above - above) * harmonic_between(above, above + hits))


def chance(relevant: Indices, items: int) -> Values:
    """Compute the expected AP (b,) of a random order of `items` items with `relevant` (b,) relevant items.

    With N = `items` and R = `relevant`, the expected AP is (R-1)/(N-1) + (1 - (R-1)/(N-1)) H_N / N. The harmonic
    number H_N is 1 + 1/2 + ... + 1/N.
    """
    nothing, everything = np.zeros_like(relevant), np.full_like(relevant, items)
    return precision_sum(nothing, nothing, everything, relevant, everything) / relevant


@lru_cache(maxsize=4096)
def reciprocal_of_first(above: int, size: int, hits: int, limit: int) -> float:
    """Compute the expectation of 1 / rank of the first relevant item of a group, with 0 for ranks beyond `limit`.

    Args:
        above: number of better items.
        size: number of tied items of the group.
        hits: number of relevant items of the group.
        limit: last rank that counts.
    """
    last = min(size - hits + 1, limit - above)
    if last < 1:
        return 0.0
    if size == 1:
        return 1 / (above + 1)
    place = np.arange(1, last + 1)
    here = no_hit(np.full_like(place, size), np.full_like(place, hits), place - 1) * hits / (size - place + 1)
    return float((here / (above + place)).sum())


def no_hit(size: Indices, hits: Indices, places: Indices) -> Values:
    """Compute the probability (g,) that no relevant item is among the first `places` of a group of tied items."""
    return hypergeometric(size, hits, places, np.zeros_like(places))


def hypergeometric(size: Indices, hits: Indices, places: Indices, successes: Indices) -> Values:
    """Compute the probability of exactly `successes` relevant items among the first `places` of `size` items.

    The `size` items contain `hits` relevant items and are in random order. All arguments broadcast to the shape of
    the result.
    """
    possible = (successes >= 0) & (successes <= hits) & (successes <= places) & (places - successes <= size - hits)
    log = _log_choose(hits, successes) + _log_choose(size - hits, places - successes) - _log_choose(size, places)
    return np.where(possible, np.exp(np.where(possible, log, 0.0)), 0.0)


def _log_choose(n: Indices, k: Indices) -> Values:
    k = np.clip(k, 0, n)
    return np.asarray(gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0))


def hits_normalized(
    above: Indices, hits_above: Indices, size: Indices, hits: Indices, places: Indices
) -> tuple[Values, Values]:
    """Compute the expectations of two quotients for groups of ties that a cutoff splits.

    Let r be `hits_above`, and let X be the number of relevant items among the first `places` items of a group. The
    number of relevant items up to the cutoff is r + X. Let P be the sum of the precisions at the X items. The
    results are E[P / (r + X)] and E[1 / (r + X)]. A quotient counts as 0 where r + X is 0. Each argument and each
    result has shape (g,).
    """
    successes = np.arange(int(np.minimum(hits, places).max(initial=0)) + 1)[None, :]
    t, r, n, m, k = (values[:, None] for values in (above, hits_above, size, hits, places))
    probability = hypergeometric(n, m, k, successes)
    weight = np.where(r + successes > 0, probability / np.maximum(r + successes, 1), 0.0)
    first = precision_sum(t, r, np.maximum(k, 1), np.minimum(successes, k), k)
    return np.asarray((weight * first).sum(axis=1)), np.asarray(weight.sum(axis=1))
