"""Interval of the plan: seeds and queries as random factors, and a fixed gallery.

The pages of the experiment use this interval, because the plan prescribes it. `aadml compare` resamples clips as
queries and as gallery items; see `aadml.retrieval.influence`.
"""

from dataclasses import replace

import numpy as np
from scipy.special import ndtri

from aadml.retrieval.significance import LEVEL, Difference, Values, seeds_and_clips

DRAWS = 2000
_DRAWN = 1 << 22  # maximum number of drawn indices in memory
NORMAL = float(ndtri(1 - LEVEL / 2))


def seeds_and_queries(first: Values, second: Values, *, draws: int = DRAWS) -> Difference:
    """Compare two methods with seeds and queries as random factors.

    The test is that of `seeds_and_clips`, on average precisions of queries instead of pseudo-values of clips. A
    bootstrap over seeds and queries determines the shape of the interval. The standard error and Student's t determine
    its width, because a bootstrap of few seeds varies too little.

    Args:
        first: (s, q) average precision of each query under each seed; the queries and their order are the same.
        second: (s, q) AP of the same seeds and queries.
        draws: number of bootstrap draws; only the interval depends on them.
    """
    test = seeds_and_clips(first, second)
    if test.seeds == 2 or np.isnan(test.p):
        return test
    low, high = _shape(first - second, draws)
    reach = (test.high - test.low) / 2 / NORMAL
    return replace(test, low=test.mean + low * reach, high=test.mean + high * reach)


def _shape(d: Values, draws: int) -> tuple[float, float]:
    """Return the 2.5 % and 97.5 % quantiles of the mean of differences (s, q), in standard deviations from the mean.

    Seeds and queries are drawn with replacement and independently (pigeonhole bootstrap, Owen, 2007).
    """
    s, q = d.shape
    generator, means = np.random.default_rng(0), []
    step = max(1, _DRAWN // q)
    for start in range(0, draws, step):
        count = min(step, draws - start)
        seeds = generator.multinomial(s, np.full(s, 1 / s), count)
        queries = generator.multinomial(q, np.full(q, 1 / q), count)
        means.append(((queries @ d.T) * seeds).sum(axis=1) / (s * q))
    drawn = np.concatenate(means)
    deviation = float(drawn.std())
    if deviation == 0:
        return -NORMAL, NORMAL
    low, high = (np.quantile(drawn, (LEVEL / 2, 1 - LEVEL / 2)) - d.mean()) / deviation
    return float(low), float(high)
