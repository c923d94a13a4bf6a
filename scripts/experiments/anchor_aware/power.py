"""Number of seeds that decide a paired difference of MAP: the table of docs/lab/experiments/plan.md.

Usage: python -m scripts.experiments.anchor_aware.power prints two rates for numbers of seeds and standard deviations of
a paired difference: how often two one-sided t tests detect equivalence at a margin of 0.01 if there is no difference,
and how often a two-sided paired t test detects a difference of 0.01 and of 0.02. The rates are simulated, because the
deviation is estimated too.
"""

import numpy as np
from scipy import stats

DRAWS, LEVEL, MARGIN = 200_000, 0.05, 0.01
SEEDS, DEVIATIONS = (10, 20, 30, 40), (0.016, 0.020, 0.030)


def drawn(count, deviation, true, generator):
    """Draw means of `count` paired differences and their standard errors, (DRAWS,) each."""
    means = true + deviation / np.sqrt(count) * generator.standard_normal(DRAWS)
    squares = generator.chisquare(count - 1, DRAWS) / (count - 1)
    return means, deviation * np.sqrt(squares / count)


def equivalence(count, deviation, generator):
    means, errors = drawn(count, deviation, 0.0, generator)
    reach = stats.t.ppf(1 - LEVEL, count - 1) * errors
    return np.mean((means - reach > -MARGIN) & (means + reach < MARGIN))


def difference(count, deviation, true, generator):
    means, errors = drawn(count, deviation, true, generator)
    return np.mean(np.abs(means) > stats.t.ppf(1 - LEVEL / 2, count - 1) * errors)


if __name__ == "__main__":
    print("| seeds | equivalence at 0.01 | a difference of 0.01 is found | of 0.02 |\n|---|---|---|---|")
    for seeds in SEEDS:
        generator = np.random.default_rng(0)
        cells = [
            ", ".join(f"{power(seeds, deviation):.2f}" for deviation in DEVIATIONS)
            for power in (
                lambda count, deviation: equivalence(count, deviation, generator),  # noqa: B023
                lambda count, deviation: difference(count, deviation, 0.01, generator),  # noqa: B023
                lambda count, deviation: difference(count, deviation, 0.02, generator),  # noqa: B023
            )
        ]
        print(f"| {seeds} | {' | '.join(cells)} |")
