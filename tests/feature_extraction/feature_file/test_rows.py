import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from aadml.feature_extraction.feature_file.rows import Cursor, FeatureRows, gathered


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
