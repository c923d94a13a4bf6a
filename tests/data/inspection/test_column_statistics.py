import numpy as np
import pytest

from aadml.data.inspection import column_statistics


def test_statistics_in_blocks_are_those_of_all_values(monkeypatch):
    values = np.random.default_rng(0).integers(-2, 3, (100, 4)).astype(np.float32) * np.float32(0.3)
    values[:, 2], values[[3, 77]] = 0.5, 0
    there = np.arange(100) % 5 != 1
    monkeypatch.setattr(column_statistics, "_BYTES", 100)
    found, own = column_statistics.compute_statistics(values, there), values[there]
    assert (found["minimum"], found["maximum"]) == (float(own.min()), float(own.max()))
    assert found["mean"] == pytest.approx(own.mean(dtype=np.float64), rel=1e-12)
    assert found["standard_deviation"] == pytest.approx(own.std(dtype=np.float64), rel=1e-12)
    assert found["zeros"] == (own == 0).mean()
    assert (found["zero_rows"], found["constant_dimensions"], found["whole_numbers"]) == (2, 0, False)
    assert (
        column_statistics.row_hashes(values)[3]
        == column_statistics.row_hashes(-values)[77]
        == column_statistics.row_hashes(np.zeros((1, 4), "f"))[0]
    )
    assert len(set(column_statistics.row_hashes(values))) == len(np.unique(values, axis=0))
