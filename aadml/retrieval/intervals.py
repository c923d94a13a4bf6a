"""Intervals of a mean over queries by the percentile bootstrap (Efron and Tibshirani, 1993, chapter 13)."""

import numpy as np

from aadml.retrieval.ties import Values

LEVEL = 0.95
RESAMPLES = 1000
_AT_ONCE = 1 << 22  # maximum number of drawn indices in memory


def bootstrap_interval(values: Values) -> tuple[float, float]:
    """Return the 95 % interval of the mean of `values` (q,) over resampled queries.

    The interval covers the variation between queries of the same kind, not the variation between trainings, which
    requires several seeds.

    Args:
        values: (q,) one value per query.

    Returns:
        Lower and upper end; both equal the value if there is one query.
    """
    generator = np.random.default_rng(0)
    count = max(1, _AT_ONCE // len(values))
    parts = [min(count, RESAMPLES - start) for start in range(0, RESAMPLES, count)]
    means = [values[generator.integers(0, len(values), (part, len(values)))].mean(axis=1) for part in parts]
    low, high = np.quantile(np.concatenate(means), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)
