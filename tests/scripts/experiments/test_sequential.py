import itertools

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import permutation_test, ttest_1samp

from aadml.retrieval.significance import paired_t
from scripts.experiments.anchor_aware.sequential import LOOK_LEVEL, is_decided, look_interval, sign_flip


def test_sign_flip_tries_all_signs():
    d = np.random.default_rng(0).normal(0.3, 1, 7)
    means = [abs(np.mean(np.array(signs) * d)) for signs in itertools.product((-1, 1), repeat=7)]
    assert sign_flip(d) == pytest.approx(np.mean([mean >= abs(d.mean()) - 1e-12 for mean in means]))
    assert sign_flip(d) == pytest.approx(permutation_test((d,), np.mean, permutation_type="samples").pvalue)
    assert sign_flip([1.0] * 10) == 2 / 1024
    assert sign_flip([0.0, 0.0]) == 1


def test_sign_flip_of_many_seeds_draws_signs_and_is_never_zero():
    d = np.random.default_rng(1).normal(0.2, 1, 40)
    assert sign_flip(d) == pytest.approx(ttest_1samp(d, 0).pvalue, rel=0.15)
    assert sign_flip(np.ones(40)) == pytest.approx(1 / 100_001)


def test_four_looks_at_their_level_err_once_in_twenty_experiments():
    generator = np.random.default_rng(2)
    steps = generator.standard_normal((200_000, 4)).cumsum(axis=1) / np.sqrt([1, 2, 3, 4])
    assert np.mean((np.abs(steps) > -ndtri(LOOK_LEVEL / 2)).any(axis=1)) == pytest.approx(0.05, abs=0.002)


def test_a_look_decides_by_a_difference_or_by_equivalence():
    generator = np.random.default_rng(3)
    b = generator.random(20)
    assert is_decided(b + generator.normal(0.05, 0.02, 20), b)
    assert is_decided(b - generator.normal(0.05, 0.02, 20), b)
    assert is_decided(b + generator.normal(0, 0.002, 20), b)
    assert not is_decided(b + generator.normal(0, 0.1, 20), b)
    assert not is_decided(b[:1] + 1, b[:1])


def test_the_interval_of_a_look_is_students():
    generator = np.random.default_rng(4)
    a, b = generator.random(10), generator.random(10)
    expected = ttest_1samp(a - b, 0).confidence_interval(1 - LOOK_LEVEL)
    assert look_interval(paired_t(a, b), 10) == pytest.approx((expected.low, expected.high))
