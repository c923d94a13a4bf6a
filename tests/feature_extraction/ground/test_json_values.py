from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Annotated, Literal

import pytest
from annotated_types import Interval
from hypothesis import given
from hypothesis import strategies as st

from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import (
    Json,
    inner,
    nested,
    number,
    parse_object,
    read_as,
    texts,
    to_bytes,
    typed,
)


@dataclass(frozen=True)
class Part:
    size: int
    sha256: str = ""


@dataclass(frozen=True)
class Whole:
    name: str
    share: Annotated[float, Interval(ge=0, le=1)]
    kind: Literal["audio", "visual"]
    parts: Mapping[str, Part]
    sizes: tuple[int, ...] = ()
    pair: tuple[int, str] = (0, "")
    lines: Sequence[str] = field(default_factory=list)
    epoch: int | None = None
    ready: bool = False
    rest: Mapping[str, Json] = field(default_factory=dict)


WHOLE = {
    "name": "a", "share": 0.5, "kind": "audio", "parts": {"one": {"size": 3, "sha256": "f"}}, "sizes": [1, 2],
    "pair": [1, "b"], "lines": ["c"], "epoch": 4, "ready": True, "rest": {"any": [None, {"thing": 1}]},
}  # fmt: skip


def test_a_record_comes_back_with_every_type():
    found = read_as(Whole, parse_object(to_bytes(WHOLE), "here"), "here")
    assert found == Whole(
        "a", 0.5, "audio", {"one": Part(3, "f")}, (1, 2), (1, "b"), ["c"], 4, True, {"any": [None, {"thing": 1}]}
    )
    assert parse_object(to_bytes(asdict(found)), "here") == WHOLE


def test_a_whole_number_is_a_number_and_stays_as_it_was_written():
    assert str(read_as(Whole, WHOLE | {"share": 1}, "here").share) == "1"


def test_a_field_with_a_default_may_be_left_out():
    least = {key: WHOLE[key] for key in ("name", "share", "kind", "parts")}
    assert read_as(Whole, least, "here") == Whole("a", 0.5, "audio", {"one": Part(3, "f")})


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"name": 3}, "Whole.name"),
        ({"share": True}, "Whole.share"),
        ({"share": "0.5"}, "Whole.share"),
        ({"kind": "text"}, "Whole.kind"),
        ({"parts": [1]}, "Whole.parts"),
        ({"parts": {"one": {}}}, "Whole.parts.one.size"),
        ({"parts": {"one": {"size": 1, "color": "red"}}}, "color"),
        ({"sizes": [1, "2"]}, "Whole.sizes"),
        ({"sizes": 1}, "Whole.sizes"),
        ({"pair": [1]}, "Whole.pair"),
        ({"lines": "c"}, "Whole.lines"),
        ({"epoch": 1.5}, "Whole.epoch"),
        ({"epoch": True}, "Whole.epoch"),
        ({"ready": 1}, "Whole.ready"),
        ({"other": 1}, "other"),
    ],
)
def test_anything_else_is_refused_with_its_place(change, place):
    with pytest.raises(InputError, match=r"^here: of another version, or damaged") as caught:
        read_as(Whole, WHOLE | change, "here")
    assert place in str(caught.value)


def test_a_missing_field_is_named():
    with pytest.raises(InputError, match=r"Whole\.name is missing"):
        read_as(Whole, {key: value for key, value in WHOLE.items() if key != "name"}, "here")


PLAIN = st.none() | st.booleans() | st.integers() | st.text()


@pytest.mark.slow
@given(st.recursive(PLAIN, lambda inside: st.lists(inside) | st.dictionaries(st.text(), inside)))
def test_any_other_json_is_refused_in_one_line(content):
    for value in (content, WHOLE | {"parts": [content]}, WHOLE | {"parts": {"one": content}}):
        with pytest.raises(InputError, match=r"^here: .*\)$"):
            read_as(Whole, value, "here")
    assert isinstance(nested(content, "a", "b"), Mapping)
    assert isinstance(texts(content), list)


@pytest.mark.parametrize("text", ["", "[1]", "3", "{", "\x00", '{"a": }', "[" * 100_000])
def test_what_is_no_object_is_damaged(text):
    with pytest.raises(InputError, match="here: damaged"):
        parse_object(text, "here")


def test_keys_lead_to_what_is_nested():
    assert inner(WHOLE, "parts", "one", "size") == 3
    assert inner(WHOLE, "parts", "two", "size") is None
    assert inner(WHOLE, "name", "one") is None
    assert nested(WHOLE, "parts", "one") == {"size": 3, "sha256": "f"}
    assert nested(WHOLE, "name") == {}
    assert texts([1, "b"]) == ["1", "b"]
    assert texts("word") == []


def test_a_value_of_another_type_is_refused_by_its_key():
    assert typed(WHOLE, "name", str) == "a"
    assert number(3) == 3.0
    with pytest.raises(InputError, match=r"^name: "):
        typed(WHOLE, "name", int)
    with pytest.raises(InputError, match=r"^nothing: "):
        typed(WHOLE, "nothing", int)
    with pytest.raises(TypeError, match="no number"):
        number("3")
