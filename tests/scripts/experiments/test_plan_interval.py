import numpy as np

from aadml.retrieval.significance import seeds_and_clips
from scripts.experiments.anchor_aware.plan_interval import seeds_and_queries


def test_a_skewed_difference_has_a_skewed_interval_and_the_same_test():
    generator = np.random.default_rng(10)
    skewed = generator.exponential(1, (1, 40)) ** 2 + generator.normal(0, 0.01, (4, 40))
    found, zero = seeds_and_queries(skewed, np.zeros((4, 40))), np.zeros((4, 40))
    assert found.high - found.mean > 1.1 * (found.mean - found.low)
    assert seeds_and_queries(skewed, zero) == found
    test = seeds_and_clips(skewed, zero)
    assert (found.p, found.error, found.equal) == (test.p, test.error, test.equal)
    assert seeds_and_queries(skewed[:2], zero[:2]) == seeds_and_clips(skewed[:2], zero[:2])
