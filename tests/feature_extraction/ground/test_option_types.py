from dataclasses import dataclass
from typing import Annotated, Literal

import pytest
from annotated_types import Ge, Gt, Interval, Len, Lt, MinLen, MultipleOf, Unit

from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.option_types import (
    Choice,
    OnlyWith,
    OwnSection,
    Tuning,
    Written,
    metadata_of,
    possible,
)
from aadml.feature_extraction.ground.validation import checked
from tests.option_leaves import is_bounded, leaves


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (bool, "true or false"),
        (str | None, "text or null"),
        (Annotated[float, Interval(gt=0, le=100)], "a number above 0 to 100"),
        (Annotated[float, Ge(0.5), Lt(2), Unit("s")], "a number (s) from 0.5 to below 2"),
        (
            Annotated[int, Interval(ge=2, le=1_000_000), MultipleOf(2)],
            "a whole number from 2 to 1000000 that 2 divides",
        ),
        (Literal["sum", "mean"], "one of sum, mean"),
        (Annotated[str, Choice({"relu": 1, "tanh": 2})], "one of relu, tanh"),
        (Annotated[str, Written("hf:", "hf:MODEL")], "hf:MODEL"),
        (Annotated[tuple[Annotated[int, Gt(0)], ...], Len(1, 3)], "a list of 1 to 3, each a whole number above 0"),
        (Annotated[tuple[int, ...], Len(2, 2)], "a list of 2, each a whole number"),
        (tuple[int, ...], "a list of 0 or more, each a whole number"),
        (tuple[int, int], "a list of 2, each a whole number"),
        (Annotated[int, Lt(3)], "a whole number to below 3"),
        (Annotated[tuple[int, ...], MinLen(2)], "a list of 2 or more, each a whole number"),
        (Annotated[float, Tuning(0.1), Ge(1e6)], "a number from 1e+06"),
        (Literal["a"] | None, "one of a or null"),
        (dict, "dict"),
    ],
)
def test_possible_values_are_described(kind, expected):
    assert possible(kind) == expected


def test_leaves_are_the_alternatives_and_the_items():
    bounds = Interval(ge=0, le=1)
    kinds = list(leaves(Annotated[float, bounds] | tuple[int, ...] | None))
    assert [kind for kind, _ in kinds] == [float, int, type(None)]
    assert is_bounded(kinds[0][1])
    assert not is_bounded(kinds[1][1])


def test_groups_of_metadata_are_expanded():
    assert metadata_of(Annotated[float, Interval(ge=0, lt=1), Tuning(0.1)]) == (Ge(0), Lt(1), Tuning(0.1))
    assert metadata_of(float) == ()


def test_conditions_are_written_as_text():
    assert str(OnlyWith("optimizer", "sgd")) == "optimizer sgd"
    assert str(OnlyWith("optimizer", "sgd", "adam", "lbfgs")) == "optimizer sgd, adam or lbfgs"


def test_names_and_prefixes_are_checked():
    name, place = Annotated[str, Choice(["relu", "tanh"])], Annotated[str, Written("h.f:", "h.f:MODEL")]
    assert [checked(name, "tanh", "key"), checked(place, "h.f:a", "key")] == ["tanh", "h.f:a"]
    for kind, value in ((name, "elu"), (place, "h.f:"), (place, "hxf:a"), (place, "x h.f:a"), (place, 3)):
        with pytest.raises(InputError, match=r"^key is .*; pass (one of relu, tanh|h\.f:MODEL)$"):
            checked(kind, value, "key")


def test_a_section_is_written_as_its_fields():
    @dataclass(frozen=True)
    class Section(OwnSection):
        size: int = 3

    assert Section().plain() == {"size": 3}
