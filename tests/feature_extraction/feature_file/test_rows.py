import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from aadml.feature_extraction.feature_file import rows
from aadml.feature_extraction.feature_file.rows import Cursor, FeatureRows, block_rows, gathered, is_large, spread


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


def test_blocks_have_four_mebibytes_at_most_and_a_row_at_least(monkeypatch):
    sizes = [block_rows(shape, np.dtype("f4")) for shape in ((9,), (9, 1024), (9, 1023), (9, 1 << 21), (9, 0))]
    assert sizes == [1 << 20, 1024, 1025, 1, 1 << 22]
    assert [is_large(size) for size in ((1 << 28) - 1, 1 << 28)] == [False, True]
    monkeypatch.setattr(rows, "LARGE", 0)
    assert [is_large(size) for size in (0, 1)] == [False, True]
    monkeypatch.setattr(rows, "_BYTES", 24)
    array = np.arange(7.0)
    assert [block.tolist() for block in FeatureRows.of(array).blocks()] == [[0, 1, 2], [3, 4, 5], [6]]
    assert [len(block) for block in gathered(np.zeros(n, np.int8) for n in (24, 23, 0, 1, 30, 2))] == [24, 24, 30, 2]


def test_absent_clips_are_zeros_between_the_pieces():
    pieces, present = [np.ones(2, np.float32), np.full(2, 3, np.float32)], np.array([False, True, False, True])
    blocks = list(spread(pieces, present, 2))
    assert [block.tolist() for block in blocks] == [[[0, 0]], [[1, 1]], [[0, 0]], [[3, 3]]]
