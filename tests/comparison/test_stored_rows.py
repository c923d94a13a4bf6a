"""Rows that stay where they are: what is taken of them is what the array holds, and no whole copy is made."""

import tracemalloc

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from aadml.comparison.clips import Clips
from aadml.comparison.stored_rows import StoredRows
from aadml.feature_extraction.ground.errors import InputError
from aadml.methods.inputs import Inputs, fit_scaling


def values(n=7, d=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)


def of_file(array, folder, *, offset):
    """Map an array from a file in which it begins at any address."""
    path = folder / "numbers"
    path.write_bytes(bytes(offset) + array.tobytes())
    return np.memmap(path, np.float32, "c", offset, array.shape)


def clips(features, n):
    return Clips({"audio": features}, torch.zeros(n, dtype=torch.int64), tuple(map(str, range(n))), ("x",))


@given(st.lists(st.integers(0, 6), max_size=9), st.lists(st.integers(0, 8), max_size=5), st.integers(1, 5))
def test_selected_rows_are_those_of_the_array_in_that_order(chosen, again, size):
    array = values()
    again = [place for place in again if place < len(chosen)]
    rows = StoredRows.of(array).select(torch.tensor(chosen, dtype=torch.int64))
    expected = torch.from_numpy(array)[chosen]
    assert rows.shape == (len(chosen), 3)
    assert torch.equal(rows.batch(torch.tensor(again, dtype=torch.int64)), expected[again])
    assert torch.equal(torch.cat([torch.empty(0, 3), *rows.split(size)]), expected)
    assert torch.equal(rows.tensor, expected)
    assert b"".join(rows.content()) == expected.numpy().tobytes()


@pytest.mark.parametrize("offset", [0, 1, 4, 4667])
def test_rows_of_a_file_may_lie_at_any_address(tmp_path, offset):
    array = values()
    rows = StoredRows.of(of_file(array, tmp_path, offset=offset))
    assert torch.equal(rows.batch(torch.tensor([3, 0])), torch.from_numpy(array)[[3, 0]])
    assert torch.equal(rows.tensor, torch.from_numpy(array))


@pytest.mark.parametrize("name", ["none", "standard", "minmax", "l2"])
def test_a_scaling_is_fitted_and_laid_over_rows_as_over_a_tensor(name):
    array, chosen = values(500, 4) * 30, torch.arange(0, 500, 3)
    array[:, 1] = 0.1  # a constant column
    one, other = clips(torch.from_numpy(array), 500).select(chosen), clips(StoredRows.of(array), 500).select(chosen)
    fitted, lazily = (fit_scaling(part, Inputs(scaling=name, clamp=1.0)) for part in (one, other))
    for kind in ("shift", "scale"):
        assert torch.equal(getattr(fitted, kind)["audio"], getattr(lazily, kind)["audio"])
    assert torch.equal(fitted.clips(one).matrix("audio"), lazily.clips(other).matrix("audio"))
    assert other.dimension("audio") == 4


def test_neither_selecting_nor_scaling_copies_the_rows(tmp_path, monkeypatch):
    monkeypatch.setattr("aadml.comparison.moments._NUMBERS_AT_ONCE", 1 << 16)
    taken, batch = [], StoredRows.batch

    def watched(rows, index):
        taken.append(len(index))
        return batch(rows, index)

    monkeypatch.setattr(StoredRows, "batch", watched)
    array = of_file(values(20_000, 64), tmp_path, offset=1)
    whole = clips(StoredRows.of(array), 20_000)
    tracemalloc.start()
    part = whole.select(torch.randperm(20_000))
    scaled = fit_scaling(part).clips(part)
    scaled.vectors("audio").batch(torch.arange(100))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < array.nbytes / 4
    assert max(taken) == 1024


def test_matrices_come_into_memory_once_and_when_they_are_asked_for():
    asked = clips(StoredRows.of(values()), 7)
    rows = asked.vectors("audio")
    found = asked.matrices
    assert list(found) == ["audio"]
    assert len(found) == 1
    assert "tensor" not in vars(rows)
    assert found["audio"] is found["audio"]
    assert isinstance(asked.in_memory()["audio"], torch.Tensor)


def test_what_is_no_vector_is_still_refused():
    class Words:
        def __len__(self):
            return 7

        def select(self, index):
            return self

        def batch(self, index):
            return index

    with pytest.raises(InputError, match="computed batch by batch"):
        clips(Words(), 7).vectors("audio")
