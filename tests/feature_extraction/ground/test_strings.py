"""Names as people write them."""

import pytest

from aadml.feature_extraction.ground.strings import listed


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
