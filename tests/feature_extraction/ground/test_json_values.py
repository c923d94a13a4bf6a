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
    parse_object,
    read_as,
    texts,
    to_bytes,
    typed,
)


@dataclass(frozen=True)
class Piece:
    size: int
    sha256: str = ""


@dataclass(frozen=True)
class Record:
    name: str
    share: Annotated[float, Interval(ge=0, le=1)]
    kind: Literal["audio", "visual"]
    parts: Mapping[str, Piece]
    sizes: tuple[int, ...] = ()
    pair: tuple[int, str] = (0, "")
    lines: Sequence[str] = field(default_factory=list)
    epoch: int | None = None
    ready: bool = False
    rest: Mapping[str, Json] = field(default_factory=dict)


RECORD = {
    "name": "a", "share": 0.5, "kind": "audio", "parts": {"one": {"size": 3, "sha256": "f"}}, "sizes": [1, 2],
    "pair": [1, "b"], "lines": ["c"], "epoch": 4, "ready": True, "rest": {"any": [None, {"thing": 1}]},
}  # fmt: skip


def test_a_record_comes_back_with_every_type():
    found = read_as(Record, parse_object(to_bytes(RECORD), "here"), "here")
    assert found == Record(
        "a", 0.5, "audio", {"one": Piece(3, "f")}, (1, 2), (1, "b"), ["c"], 4, True, {"any": [None, {"thing": 1}]}
    )
    assert parse_object(to_bytes(asdict(found)), "here") == RECORD


def test_a_file_name_that_is_not_utf8_does_not_make_a_record_unreadable():
    assert read_as(Record, RECORD | {"name": "f\udcff.h5"}, "here").name == "f?.h5"


def test_values_are_written_as_indented_lines():
    assert to_bytes({"a": [1]}) == b'{\n  "a": [\n    1\n  ]\n}\n'


def test_an_integer_is_a_valid_float():
    assert read_as(Record, RECORD | {"share": 1}, "here").share == 1


def test_a_field_with_a_default_may_be_left_out():
    least = {key: RECORD[key] for key in ("name", "share", "kind", "parts")}
    assert read_as(Record, least, "here") == Record("a", 0.5, "audio", {"one": Piece(3, "f")})


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"name": 3}, "Record.name"),
        ({"share": True}, "Record.share"),
        ({"share": "0.5"}, "Record.share"),
        ({"kind": "text"}, "Record.kind"),
        ({"parts": [1]}, "Record.parts"),
        ({"parts": {"one": {}}}, "Record.parts.one.size"),
        ({"parts": {"one": {"size": 1, "color": "red"}}}, "color"),
        ({"sizes": [1, "2"]}, "Record.sizes"),
        ({"sizes": 1}, "Record.sizes"),
        ({"pair": [1]}, "Record.pair"),
        ({"lines": "c"}, "Record.lines"),
        ({"epoch": 1.5}, "Record.epoch"),
        ({"epoch": True}, "Record.epoch"),
        ({"ready": 1}, "Record.ready"),
        ({"other": 1}, "other"),
    ],
)
def test_anything_else_is_refused_with_its_place(change, place):
    with pytest.raises(InputError, match=r"^here is of another version, or is damaged") as caught:
        read_as(Record, RECORD | change, "here")
    assert place in str(caught.value)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ({key: value for key, value in RECORD.items() if key != "name"}, "name: Field required"),
        (
            RECORD | {"name": [7] * 30, "share": "1"},
            f"name: Input should be a valid string, not '{str([7] * 30)[:40]}'",
        ),
    ],
)
def test_the_first_problem_is_named_with_its_place_and_value(content, problem):
    with pytest.raises(InputError) as caught:
        read_as(Record, content, "here")
    assert str(caught.value) == (
        f"here is of another version, or is damaged (Record.{problem}); use the version of aadml that wrote the file, "
        "or restore the file from a copy"
    )


PLAIN = st.none() | st.booleans() | st.integers() | st.text()


@pytest.mark.slow
@given(st.recursive(PLAIN, lambda inside: st.lists(inside) | st.dictionaries(st.text(), inside)))
def test_any_other_json_is_refused_in_one_line(content):
    for value in (content, RECORD | {"parts": [content]}, RECORD | {"parts": {"one": content}}):
        with pytest.raises(InputError, match=r"^here .*\); use the version of aadml .* from a copy$"):
            read_as(Record, value, "here")
    assert isinstance(nested(content, "a", "b"), Mapping)
    assert isinstance(texts(content), list)


@pytest.mark.parametrize("text", ["", "[1]", "3", "{", "\x00", '{"a": }', "[" * 100_000])
def test_what_is_no_object_is_damaged(text):
    with pytest.raises(InputError, match="here is damaged"):
        parse_object(text, "here")


def test_keys_lead_to_what_is_nested():
    assert inner(RECORD, "parts", "one", "size") == 3
    assert inner(RECORD, "parts", "two", "size") is None
    assert inner(RECORD, "name", "one") is None
    assert nested(RECORD, "parts", "one") == {"size": 3, "sha256": "f"}
    assert nested(RECORD, "name") == {}
    assert texts([1, "b"]) == ["1", "b"]
    assert texts("word") == []


def test_a_value_of_another_type_is_refused_by_its_key():
    assert typed(RECORD, "name", str) == "a"
    with pytest.raises(InputError) as caught:
        typed({"name": "a" * 50}, "name", int)
    assert (
        str(caught.value)
        == f"name is '{'a' * 40}', but must be of type int; restore the file with this value from a copy"
    )
    with pytest.raises(InputError, match=r"^nothing is missing or null, but must be of type int"):
        typed(RECORD, "nothing", int)
