import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from aadml.feature_extraction.hub.windows import TAIL, begins, cut, starts


def test_a_clip_shorter_than_a_window_is_one_window():
    assert starts(7, 10, 5).tolist() == [0]
    assert [len(part) for part in cut(np.zeros(7, np.float32), 10, 5)] == [7]


def test_the_last_window_ends_with_the_clip():
    assert starts(27, 10, 10).tolist() == [0, 10, 17]
    assert begins(10, 10, 2, 3, 13.5).tolist() == [0.0, 5.0, 8.5]


def test_a_remainder_below_the_tail_is_dropped():
    assert starts(1000 + int(TAIL * 1000), 1000, 1000).tolist() == [0]
    assert starts(1001 + int(TAIL * 1000), 1000, 1000).tolist() == [0, 51]


@given(st.integers(1, 500), st.integers(1, 100), st.integers(1, 100))
def test_windows_are_complete_and_increasing(samples, window, hop):
    first = starts(samples, window, hop)
    assert first[0] == 0
    assert (np.diff(first) > 0).all()
    assert first[-1] + min(window, samples) <= samples
