"""Numbers that come block by block: what is written, read, taken and refused does not depend on the blocks."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aadml.feature_extraction.feature_file import (
    Cursor,
    FeatureFile,
    FeatureRows,
    Timeline,
    gathered,
    read_features,
    rows,
    write_features,
)
from aadml.feature_extraction.ground.errors import InputError


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(rows, "_BYTES", 24)


def content(values=None, times=None):
    generator = np.random.default_rng(0)
    audio = generator.normal(size=(9, 4)).astype(np.float32) if values is None else values
    sequence = generator.normal(size=(20, 4)).astype(np.float32)
    offsets = np.array([0, 2, 2, 5, 6, 10, 11, 15, 20, 20])
    return FeatureFile(
        features={"audio": audio},
        labels=np.zeros(9, dtype=np.int64),
        ids=tuple("abcdefghi"),
        splits=("train",) * 9,
        class_names=("x",),
        sequences={"audio": Timeline(sequence, offsets, times)},
    )


def starting_anew():
    """Times that begin anew with each clip."""
    offsets = content().sequences["audio"].offsets
    return np.concatenate([np.arange(stop - start) for start, stop in itertools.pairwise(offsets)]) * 0.5


def test_small_blocks_give_the_same_bytes_and_are_read_as_the_same(tmp_path, monkeypatch):
    whole = content(times=starting_anew())
    write_features(tmp_path / "whole.h5", whole)
    monkeypatch.setattr(rows, "_BYTES", 24)
    write_features(tmp_path / "blocks.h5", whole)
    assert (tmp_path / "blocks.h5").read_bytes() == (tmp_path / "whole.h5").read_bytes()
    found = read_features(tmp_path / "blocks.h5")
    np.testing.assert_array_equal(found.features["audio"], whole.features["audio"])
    np.testing.assert_array_equal(found.sequences["audio"].values, whole.sequences["audio"].values)
    np.testing.assert_array_equal(found.sequences["audio"].times, starting_anew())


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("row", range(9))
def test_the_row_that_is_not_finite_is_named_in_any_block(tmp_path, row):
    values = np.ones((9, 4), np.float32)
    values[row, 2] = np.nan
    with pytest.raises(InputError, match=f"row {row} holds NaN"):
        write_features(tmp_path / "f.h5", content(values))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("small_blocks")
def test_times_that_go_back_are_found_within_and_between_blocks(tmp_path):
    offsets = set(content().sequences["audio"].offsets.tolist())
    for row in range(1, 20):
        times = np.full(20, 5.0)
        times[row:] = 4.0
        if row in offsets:
            write_features(tmp_path / "f.h5", content(times=times))
        else:
            with pytest.raises(InputError, match=f"go back at row {row}, within one clip"):
                write_features(tmp_path / "f.h5", content(times=times))


@given(st.lists(st.integers(0, 7), max_size=12), st.integers(1, 60))
def test_a_cursor_takes_what_a_slice_would(counts, size):
    array = np.arange(2.0 * sum(counts)).reshape(-1, 2)
    blocks = [array[start : start + size] for start in range(0, len(array), size)]
    cursor, start = Cursor(FeatureRows(array.shape, array.dtype, lambda: iter(blocks))), 0
    for count in counts:
        np.testing.assert_array_equal(cursor.take(count), array[start : start + count])
        start += count


@given(st.lists(st.integers(0, 5), max_size=12))
def test_gathered_pieces_are_the_whole(counts):
    pieces = [np.full((count, 2), number) for number, count in enumerate(counts)]
    found = list(gathered(pieces))
    np.testing.assert_array_equal(
        np.concatenate([np.empty((0, 2)), *found]), np.repeat(np.arange(len(counts)), counts)[:, None] * [1, 1]
    )
