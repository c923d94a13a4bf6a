import math

import pytest

from aadml.feature_extraction.ground.segment import WHOLE, Segment, segment_of


@pytest.mark.parametrize(
    ("columns", "segment", "name"),
    [
        ({}, WHOLE, "a.mp4"),
        ({"start": " ", "end": ""}, WHOLE, "a.mp4"),
        ({"start": "0"}, WHOLE, "a.mp4"),
        ({"start": " 10 ", "end": "20"}, Segment(10.0, 20.0), "a.mp4@10.0-20.0"),
        ({"end": "0.5"}, Segment(0.0, 0.5), "a.mp4@0.0-0.5"),
        ({"start": "1e9"}, Segment(1e9), "a.mp4@1000000000.0-"),
        ({"start": "-0.0", "end": "1"}, Segment(0.0, 1.0), "a.mp4@0.0-1.0"),
    ],
)
def test_the_columns_start_and_end_are_a_segment(columns, segment, name):
    found = segment_of(columns)
    assert found == segment
    assert found.named("a.mp4") == name
    assert found.named("") == ""
    assert found.is_whole == (name == "a.mp4")
    assert str(found) == name.removeprefix("a.mp4").removeprefix("@")
    assert found.length == segment.end - segment.start
    assert math.isinf(found.length) == ("end" not in columns or not columns["end"])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        *(
            ({"start": cell}, f"the start '{cell[:80]}' is not a number of seconds from 0 to 1e+09")
            for cell in ("x", "-1", "nan", "inf", "1e10", "1_0", "\u0661", "x" * 100)
        ),
        ({"end": "x"}, "the end 'x' is not a number of seconds from 0 to 1e+09"),
        ({"start": "2", "end": "2"}, "the end '2' is not after the start '2'"),
        ({"end": "0"}, "the end '0' is not after the start '0'"),
        (
            {"start": f"2.{'0' * 99}", "end": f"1.{'0' * 99}"},
            f"the end '1.{'0' * 78}' is not after the start '2.{'0' * 78}'",
        ),
    ],
)
def test_other_cells_are_refused(columns, message):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the message is compared in full
        segment_of(columns)
    assert str(caught.value) == message
