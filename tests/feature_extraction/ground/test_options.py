import json
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
    without,
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
    last: bool = True,
) -> None:
    """Return nothing.

    Args:
        size: number of units.
    """


def test_the_schema_holds_options_and_fields_of_groups():
    options = schema(entry)
    assert list(options) == ["size", "rate", "kind", "share", "last"]
    assert (options["size"].default, options["size"].sentence) == (REQUIRED, "number of units.")
    assert (options["rate"].default, options["rate"].sentence) == (0.25, "speed of learning.")
    assert (options["rate"].group, options["rate"].tuning) == ("group", (0.1, 0.2))
    assert options["share"].company == "; has an effect only with kind mixed"
    assert options["share"].written_default == "0.0"
    assert options["size"].written_default == ""
    assert options["size"].facts() == {
        "default": None, "required": True, "possible": "a whole number", "tuning": [], "acts_with": {},
        "about": "number of units.",
    }  # fmt: skip
    assert options["share"].facts() == {
        "default": 0.0, "required": False, "possible": "a number from 0 to 1", "tuning": [],
        "acts_with": {"kind": ["mixed"]}, "about": "",
    }  # fmt: skip
    assert options["kind"].company == ""
    assert [(key, o.kind, o.default) for key, o in sections(entry).items()] == [("network", Group, Group())]


def test_values_are_completed_in_the_order_of_the_schema():
    assert vars(completed(entry, OptionValues(kind="mixed", size=3, old=1), "here")) == {
        "size": 3, "rate": 0.25, "kind": "mixed", "share": 0.0, "last": True,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, r"here\.size: entry needs this option; pass a whole number"),
        ({"size": 3, "sahre": 1}, r"here\.sahre: entry has no such option; did you mean 'share'\?"),
        (
            {"size": 3, "old": 2},
            r"here\.old is 2, but this option of entry was removed; leave the option out \(its value is always 1\)",
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
    assert as_yaml(json.dumps) == "the code 'json:dumps'"
    assert as_yaml(lambda: 0) == "a value of type function"
    assert LONGEST == 60
    assert as_yaml("x" * 58) == f'"{"x" * 58}"'
    assert as_yaml("x" * 59) == f'"{"x" * 56}...'


def test_options_are_immutable_and_have_a_plain_form():
    options = OptionValues(group=Group(), size=3)
    assert options.plain() == {"group": {"rate": 0.5}, "size": 3}
    assert vars(without(options, ("group",))) == {"size": 3}
    with pytest.raises(
        AttributeError, match=r"^size cannot be set, as options are immutable; build new options instead$"
    ):
        options.size = 4
    assert removing(rate=...)(Group).removed_options == {"rate": ...}
    del Group.removed_options


def test_the_name_of_an_entry_is_that_of_its_function_unless_another_is_passed():
    def _own_entry(*, size: int) -> None: ...

    for name, shown in (("", "own-entry"), ("mine", "mine")):
        with pytest.raises(InputError, match=f"^here.size: {shown} needs this option; pass a whole number$"):
            completed(_own_entry, OptionValues(), "here", name=name)
    with pytest.raises(InputError, match="but this option of mine was removed"):
        completed(entry, OptionValues(size=3, old=2), "here", name="mine")


def test_a_type_that_is_only_imported_for_type_checkers_is_refused():
    def wrong(*, size: "Absent") -> None: ...  # noqa: F821

    with pytest.raises(InputError, match=r"the type of an option is not imported at run time .*'Absent'.*; import the"):
        schema(wrong)
