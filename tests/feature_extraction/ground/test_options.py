from dataclasses import dataclass
from types import SimpleNamespace
from typing import Annotated

import pytest
from annotated_types import Interval

from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.option_types import NoOption, OnlyWith, OwnSection, Tuning
from aadml.feature_extraction.ground.options import (
    LONGEST,
    REQUIRED,
    OptionValues,
    as_yaml,
    completed,
    idle,
    keywords,
    made,
    removing,
    schema,
    sections,
    sentences,
)

Share = Annotated[float, Interval(ge=0, le=1)]


@dataclass(frozen=True, kw_only=True)
class Group:
    """Options that several entries share.

    Attributes:
        rate: speed of
            learning.
    """

    rate: Annotated[Share, Tuning(0.1, 0.2)] = 0.5


@removing(old=1)
def entry(
    context: int,
    *,
    size: int,
    group: Group = Group(rate=0.25),
    kind: str = "plain",
    share: Annotated[Share, OnlyWith("kind", "mixed")] = 0.0,
    seed: Annotated[int, NoOption()] = 0,
    network: Annotated[Group, OwnSection()] = Group(),
) -> None:
    """Return nothing.

    Args:
        size: number of units.
    """


def test_the_schema_holds_options_and_fields_of_groups():
    options = schema(entry)
    assert list(options) == ["size", "rate", "kind", "share"]
    assert (options["size"].default, options["size"].sentence) == (REQUIRED, "number of units.")
    assert (options["rate"].default, options["rate"].sentence) == (0.25, "speed of learning.")
    assert (options["rate"].group, options["rate"].tuning) == ("group", (0.1, 0.2))
    assert options["share"].company == "; has an effect only with kind mixed"
    assert options["share"].written_default == "0.0"
    assert options["size"].facts()["required"]
    assert [(key, o.kind, o.default) for key, o in sections(entry).items()] == [("network", Group, Group())]


def test_values_are_completed_in_the_order_of_the_schema():
    assert vars(completed(entry, OptionValues(kind="mixed", size=3, old=1), "here")) == {
        "size": 3, "rate": 0.25, "kind": "mixed", "share": 0.0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, r"here\.size: entry needs this option; pass a whole number"),
        ({"size": 3, "sahre": 1}, r"here\.sahre: entry has no such option; did you mean 'share'\?"),
        (
            {"size": 3, "old": 2},
            r"here\.old is 2, but this option of entry was removed, and its value is now always 1",
        ),
    ],
)
def test_wrong_names_are_refused(values, message):
    with pytest.raises(InputError, match=message):
        completed(entry, OptionValues(**values), "here")


def test_an_option_without_effect_is_reported():
    values = {"size": 3, "rate": 0.25, "kind": "plain", "share": 0.5}
    assert idle(entry, SimpleNamespace(**values), "here") == [
        "here.share=0.5 changes nothing: it has an effect only with kind mixed, not plain"
    ]
    assert idle(entry, SimpleNamespace(**values | {"kind": "mixed"}), "here") == []
    assert idle(entry, SimpleNamespace(**values | {"share": 0.0}), "here") == []


def test_keywords_build_groups_and_sections():
    arguments = keywords(entry, OptionValues(size=3, rate=0.1, network=Group(rate=0.2), unknown=1))
    assert arguments == {"size": 3, "group": Group(rate=0.1), "network": Group(rate=0.2)}
    assert made(Group, OptionValues(rate=0.3, size=3)) == Group(rate=0.3)


def test_sentences_are_read_from_args_and_attributes():
    assert sentences("A.\n\nArgs:\n    a: one\n        line.\n    b: two.\n\nReturns:\n    c: no.\n") == {
        "a": "one line.", "b": "two.",
    }  # fmt: skip


def test_values_are_shortened_to_one_line():
    assert as_yaml([1, "ö"]) == '[1, "ö"]'
    assert as_yaml(object()) == "a value of type object"
    assert len(as_yaml("x" * 100)) == LONGEST
