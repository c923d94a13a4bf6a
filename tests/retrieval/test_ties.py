from fractions import Fraction

import numpy as np
import pytest

from aadml.retrieval import ties


@pytest.mark.parametrize("low", [0, 3, 63, 64, 1000, 10**6, 10**9])
def test_harmonic_sums_are_accurate_to_the_last_digits_however_far_they_start(low):
    for length in (1, 2, 50):
        exact = sum(Fraction(1, i) for i in range(low + 1, low + length + 1))
        found = ties.harmonic_between(np.array([low]), np.array([low + length]))[0]
        assert found == pytest.approx(float(exact), rel=2e-14)
