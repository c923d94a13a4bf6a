"""The bootstrap's interval of a mean: for many values that of the normal approximation."""

import numpy as np
import pytest

from aadml.retrieval.significance import bootstrap_interval


def test_it_is_as_wide_as_the_normal_approximation_and_lies_around_the_mean():
    values = np.random.default_rng(0).normal(3.0, 2.0, 2000)
    low, high = bootstrap_interval(values)
    reach = 1.96 * values.std() / np.sqrt(len(values))
    assert low == pytest.approx(values.mean() - reach, abs=0.2 * reach)
    assert high == pytest.approx(values.mean() + reach, abs=0.2 * reach)


def test_one_value_is_its_own_interval_and_the_draw_is_fixed():
    assert bootstrap_interval(np.array([0.25])) == (0.25, 0.25)
    assert bootstrap_interval(np.arange(9.0)) == bootstrap_interval(np.arange(9.0))
