from dataclasses import dataclass
from typing import Annotated

import pytest
from annotated_types import Interval, Len

from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.options import OptionValues
from aadml.feature_extraction.ground.validation import built, checked, checked_options

Count = Annotated[int, Interval(ge=1, le=9)]


@dataclass(frozen=True, kw_only=True)
class Section:
    """A section.

    Attributes:
        count: a count.
    """

    count: Count
    share: float = 0.5


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [(float, 1, 1.0), (tuple[int, ...], [1, 2], (1, 2)), (Count | None, None, None), (Count | str, "3", "3")],
)
def test_values_are_converted_to_their_type(kind, value, expected):
    result = checked(kind, value, "key")
    assert result == expected
    assert type(result) is type(expected)


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        (float, "3", '^key is "3"; pass a number$'),
        (Count, True, "^key is true; pass a whole number from 1 to 9$"),
        (Count, 10, "^key is 10; pass a whole number from 1 to 9$"),
        (float, float("nan"), "^key is NaN; pass a number$"),
        (tuple[int, ...], 32, r", written as \[32\]$"),
        (tuple[int, ...], "32, 16", r", written as \[32, 16\]$"),
        (Annotated[tuple[int, ...], Len(3, 3)], "32,16", "pass a list of 3, each a whole number$"),
        (str, object(), "^key is a value of type object; pass text$"),
    ],
)
def test_impossible_values_are_refused_with_the_possible_ones(kind, value, message):
    with pytest.raises(InputError, match=message):
        checked(kind, value, "key")


def test_options_are_checked_and_completed():
    assert vars(checked_options(Section, OptionValues(count=2), "s")) == {"count": 2, "share": 0.5}
    assert built(Section, OptionValues(count=2, share=1), "s") == Section(count=2, share=1.0)
    with pytest.raises(InputError, match=r"^s\.count is 0"):
        built(Section, OptionValues(count=0), "s")
    with pytest.raises(InputError, match=r"^count is 0"):
        checked_options(Section, OptionValues(count=0), "")
