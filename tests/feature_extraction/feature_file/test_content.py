import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aadml.feature_extraction.feature_file.content import Texts
from tests.feature_extraction.contents import content, masked, timed


def test_names_the_rows_of_a_split():
    assert content().rows("train").tolist() == [0, 3]
    assert content(splits=("test",) * 4).rows("train").tolist() == []


def test_finds_the_row_that_stands_at_a_moment():
    timeline = timed().sequences["audio"]
    assert timeline.rows_at(0, [0.0, 0.4, 0.5, 1.4, 1.5, 99]).tolist() == [-1, -1, 0, 0, 1, 1]
    assert timeline.rows_at(1, [0.0, 1.0]).tolist() == [-1, -1]
    assert timeline.rows_at(2, [0.0, 0.96, 1.0, 2.0]).tolist() == [2, 3, 3, 4]
    assert timeline.rows_at(3, np.arange(2) + 0.5).tolist() == [5, 5]
    with pytest.raises(ValueError, match="no times"):
        content().sequences["audio"].rows_at(0, [0.0])


def test_clips_are_chosen_with_their_masks():
    chosen = masked().select(np.array([2, 0]))
    assert chosen.has("audio").tolist() == [False, True]
    assert chosen.has("visual").tolist() == [True, True]


@given(st.lists(st.integers(0, 3), min_size=1), st.lists(st.integers(0, 3)))
def test_texts_follow_their_clips(rows, chosen):
    values = np.arange(len(rows), dtype=np.float32)[:, None]
    found = Texts.sorted(values, np.asarray(rows, dtype=np.int64)).select(np.asarray(chosen, dtype=np.int64))
    expected = [(place, number) for place, clip in enumerate(chosen) for number, row in enumerate(rows) if row == clip]
    assert list(zip(found.rows.tolist(), found.values[:, 0].tolist(), strict=True)) == expected
    first, there = found.first_of_each(len(chosen))
    assert there.tolist() == [clip in rows for clip in chosen]
    assert first[:, 0].tolist() == [rows.index(clip) if clip in rows else 0 for clip in chosen]
