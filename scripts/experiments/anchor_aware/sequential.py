"""Repeated looks at a growing experiment, and tests without assumptions on the distribution of differences."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from aadml.retrieval.significance import Difference, Values, paired_t

LOOK_LEVEL = 0.0182
"""Two-sided level of each of four looks with an overall error of 5 % (Pocock, Biometrika 1977, table 1)."""
_ALL_SIGNS = 16
_DRAWS = 100_000


def is_decided(first: ArrayLike, second: ArrayLike) -> bool:
    """Return whether a look decides a comparison over seeds: there is a difference, or there is equivalence.

    Args:
        first: (n,) scores by seed.
        second: (n,) scores of the same seeds.

    Returns:
        Whether Student's paired t test, or both one-sided tests of equivalence, are below the level of a look; False
        for fewer than two seeds.
    """
    if len(np.asarray(first)) < 2:
        return False
    found = paired_t(first, second)
    return found.p < LOOK_LEVEL or found.equal < LOOK_LEVEL


def look_interval(found: Difference, count: int) -> tuple[float, float]:
    """Return the interval of a paired difference of `count` seeds at the level of a look."""
    reach = float(stdtrit(count - 1, 1 - LOOK_LEVEL / 2)) * found.error
    return found.mean - reach, found.mean + reach


def sign_flip(differences: ArrayLike, *, seed: int = 0) -> float:
    """Return the two-sided p of paired differences: how often random signs result in a mean as large (Fisher, 1935).

    Args:
        differences: (n,) differences of n seeds. All signs are tried for up to 16, and 100,000 draws for more.
        seed: seed of the draws.
    """
    d: Values = np.asarray(differences, dtype=np.float64)
    n = len(d)
    if n <= _ALL_SIGNS:
        signs = 1 - 2 * ((np.arange(1 << n)[:, None] >> np.arange(n)) & 1)
        more = 0
    else:
        signs, more = np.random.default_rng(seed).choice([-1, 1], (_DRAWS, n)), 1
    larger = np.abs(signs @ d) >= np.abs(d.sum()) * (1 - 1e-12)
    return float((larger.sum() + more) / (len(signs) + more))
