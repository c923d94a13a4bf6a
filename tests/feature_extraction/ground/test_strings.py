"""Names as people write them."""

import pytest

from aadml.feature_extraction.ground.strings import as_text, listed


@pytest.mark.parametrize(
    ("given", "names"),
    [
        (None, ()),
        ("", ()),
        ("a", ("a",)),
        (" a, b,,c ", ("a", "b", "c")),
        (["a", "b,c"], ("a", "b", "c")),
        (("a", " b"), ("a", "b")),
    ],
)
def test_names_are_read_one_by_one_and_between_commas(given, names):
    assert listed(given) == names


def test_bytes_are_utf8_and_other_values_are_written():
    assert [as_text(value) for value in ("ö".encode(), b"a\xff", "b", 3)] == [
        "ö",
        "a\N{REPLACEMENT CHARACTER}",
        "b",
        "3",
    ]
