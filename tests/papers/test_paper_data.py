import pytest

from aadml.data.synthetic import synthetic
from aadml.feature_extraction.ground.errors import InputError
from aadml.papers.aadml_paper import chosen_parts, other_size
from aadml.reports.published import PAPER


@pytest.mark.parametrize(
    ("only", "available", "parts", "notes"),
    [
        (None, ["vegas", "ave"], list(PAPER.parts), 0),
        (None, ["ave"], [name for name in PAPER.parts if name != "table-2"], 5),
        ("figure-4, table-1", ["vegas", "ave"], ["table-1", "figure-4"], 0),
        ("table-2", ["ave"], None, 0),
        ("table-4", ["ave"], None, 0),
    ],
)
def test_parts_are_chosen_by_name_and_by_what_available_is(only, available, parts, notes):
    if parts is None:
        with pytest.raises(
            InputError, match=f"{only}: the data set of these parts is missing; pass --vegas F.h5|no part"
        ):
            chosen_parts(only, available)
        return
    selected, lines = chosen_parts(only, available)
    assert selected == parts
    assert len(lines) == notes
    if lines:
        assert lines[:2] == [
            "table-1 is reproduced without VEGAS, because no --vegas is given",
            "table-2 is left out, because no --vegas is given",
        ]


def test_data_of_another_size_than_the_papers_are_noted():
    def drawn(classes, train, test):
        return synthetic(classes=classes, train=train, valid=0, test=test, dimensions=(2, 2))

    vegas = drawn(10, 22_482, 5_621)
    assert other_size("vegas", vegas) == other_size("ave", drawn(15, 1_766, 189)) == []
    assert other_size("ave", vegas) == [
        "the data have 28,103 clips of 10 classes (the size of VEGAS); the paper's AVE has 1,955 clips of 15 classes, "
        "so the values of the paper come from other data"
    ]
    (note,) = other_size("ave", drawn(15, 90, 30))
    assert note.startswith("the data have 120 clips of 15 classes; the paper's AVE has")
