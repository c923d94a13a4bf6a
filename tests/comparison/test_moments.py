import numpy as np
import pytest
import torch

from aadml.comparison.moments import moments
from aadml.comparison.stored_rows import StoredRows


@pytest.mark.parametrize("of", [torch.from_numpy, StoredRows.of])
def test_moments_in_blocks_are_those_of_all_rows(monkeypatch, of):
    monkeypatch.setattr("aadml.comparison.moments._NUMBERS_AT_ONCE", 64)
    array = (np.random.default_rng(0).normal(size=(501, 4)) * 30 + 100).astype(np.float32)
    columns = moments(of(array))
    exact = array.astype(np.float64)
    assert np.allclose(columns.mean, exact.mean(0), rtol=1e-13)
    assert np.allclose(columns.deviation, exact.std(0), rtol=1e-13)
    assert np.array_equal(columns.largest, np.abs(exact).max(0))
