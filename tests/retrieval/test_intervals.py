"""The bootstrap's interval of a mean: for many values that of the normal approximation."""

import numpy as np
import pytest

from aadml.retrieval.intervals import bootstrap_interval


@pytest.mark.parametrize(("level", "deviations"), [(0.95, 1.96), (0.5, 0.674)])
def test_it_is_as_wide_as_the_normal_approximation_and_lies_around_the_mean(level, deviations):
    values = np.random.default_rng(0).normal(3.0, 2.0, 2000)
    low, high = bootstrap_interval(values, level=level)
    reach = deviations * values.std() / np.sqrt(len(values))
    assert low == pytest.approx(values.mean() - reach, abs=0.2 * reach)
    assert high == pytest.approx(values.mean() + reach, abs=0.2 * reach)


def test_one_value_is_its_own_interval_and_a_seed_draws_the_same():
    assert bootstrap_interval(np.array([0.25])) == (0.25, 0.25)
    values = np.arange(9.0)
    assert (
        bootstrap_interval(values, seed=1) == bootstrap_interval(values, seed=1) != bootstrap_interval(values, seed=2)
    )
