import errno
import os
import pickle
import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
import pytest
import torch
from annotated_types import Interval
from typing_extensions import TypeAliasType

from aadml.feature_extraction.ground import consent
from aadml.feature_extraction.ground.argument_types import checked, checked_call, in_words, plain
from aadml.feature_extraction.ground.errors import InputError

Number = TypeVar("Number")
Rows = TypeAliasType("Rows", np.ndarray[tuple[int, ...], np.dtype[Any]], type_params=(Number,))
"""A type like `numpy.typing.NDArray` since NumPy 2.5."""


class Kind:
    IN_WORDS = "a kind"


def function(
    path: str | os.PathLike[str] | None = None,
    count: int = 1,
    share: float = 0.5,
    mode: Literal["a", "b"] = "a",
    names: Sequence[str] = (),
    values: np.ndarray | None = None,
    options: Mapping[str, object] | None = None,
    kind: Kind | None = None,
    pair: tuple[int, int] = (0, 1),
    sizes: tuple[int, ...] = (),
    numbers: Sequence[int] = (),
):
    return path, count, share, mode, names, values, options, kind


public = checked(function, __name__, "public")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.int64(3), 3),
        (np.float32(0.5), 0.5),
        (np.bool_(True), True),
        (np.str_("a"), "a"),
        (np.array(3), 3),
        (Fraction(1, 4), 0.25),
        (np.array([1, 2]), [1, 2]),
        ({"a": np.float64(1), "b": [np.int8(2), {"c": np.arange(2)}]}, {"a": 1.0, "b": [2, {"c": [0, 1]}]}),
        ({"a": Path("b")}, {"a": "b"}),
        ((np.int64(1), "x"), (1, "x")),
        ("text", "text"),
        (None, None),
    ],
)
def test_numpy_values_become_python_values(value, expected):
    result = plain(value)
    assert result == expected
    assert type(result) is type(expected)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"path": 3}, "^public: path has type int; pass text, a path or None$"),
        ({"path": ""}, "^public: path is empty; pass a path or None$"),
        ({"count": True}, "^public: count has type bool; pass a whole number$"),
        ({"count": 1.0}, "^public: count has type float"),
        ({"share": "1"}, "^public: share has type str; pass a number$"),
        ({"mode": 3}, "^public: mode has type int; pass one of 'a', 'b'$"),
        ({"names": 3}, "^public: names has type int; pass names$"),
        ({"names": torch.zeros(2, 6)}, "^public: names has type Tensor; pass names$"),
        ({"names": torch.tensor(1.0)}, "^public: names has type Tensor; pass names$"),
        ({"names": {1, 2}}, "^public: names has type set of int; pass names$"),
        ({"names": range(3)}, "^public: names has type range; pass names$"),
        ({"kind": 3}, "^public: kind has type int; pass a kind or None$"),
        ({"pair": "ab"}, r"^public: pair has type str; pass \(a whole number, a whole number\)$"),
        ({"pair": (1, 2, 3)}, "^public: pair has type tuple of int"),
        ({"pair": (1, 2.5)}, "^public: pair has type tuple of float and int"),
        ({"pair": (1,)}, "^public: pair has type tuple"),
        ({"sizes": (1, "x")}, "^public: sizes has type tuple of int and str; pass whole numbers$"),
        ({"numbers": "12"}, "^public: numbers has type str; pass whole numbers$"),
        ({"sizes": 3}, "^public: sizes has type int; pass whole numbers$"),
        ({"count": [1]}, "^public: count has type list; pass a whole number$"),
        ({"names": b"a"}, "^public: names has type bytes; pass names$"),
    ],
)
def test_wrong_types_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        public(**arguments)


def test_a_function_in_the_place_of_its_name_is_refused_with_that_name():
    advice = "name code of your own as '{}:{}' \\(see docs/extending.md\\)$"
    for arguments, message in (
        (
            {"path": function},
            f"path has type function; pass text, a path or None; {advice.format(__name__, 'function')}",
        ),
        ({"names": [Kind]}, f"names has type list of type; pass names; {advice.format(__name__, 'Kind')}"),
        ({"count": function}, "^public: count has type function; pass a whole number$"),
        ({"path": lambda: 0}, "; name code of your own as 'module:name', at the top level of a module \\(see docs"),
    ):
        with pytest.raises(InputError, match=message):
            public(**arguments)


@checked_call
def bounded(
    *,
    count: Annotated[int, Interval(ge=1, le=9)] = 1,
    share: Annotated[float, Interval(ge=0, le=1)] | None = None,
    part: Annotated[float, Interval(gt=0, lt=1)] = 0.5,
):
    return count, share


def test_numbers_outside_of_the_range_of_their_type_are_refused():
    assert bounded(count=np.int64(9), share=None) == (9, None)
    assert bounded(share=1) == (1, 1)
    for arguments, message in (
        ({"count": 0}, "bounded: count is 0; pass a number from 1 to 9"),
        ({"count": 10}, "bounded: count is 10; pass a number from 1 to 9"),
        ({"count": 10**5000}, "bounded: count is a value of type int; pass a number from 1 to 9"),
        ({"share": float("nan")}, "bounded: share is NaN; pass a number from 0 to 1"),
        ({"part": 0}, "bounded: part is 0; pass a number above 0 to below 1"),
        ({"part": 1.0}, "bounded: part is 1.0; pass a number above 0 to below 1"),
        ({"part": float("nan")}, "bounded: part is NaN; pass a number above 0 to below 1"),
    ):
        with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
            bounded(**arguments)


def paths_of(*places: str | os.PathLike[str], more: Sequence[str | os.PathLike[str]] = ()):
    return places, more


@pytest.mark.parametrize("call", [lambda f: f("a", "x\0y"), lambda f: f(more=["a", Path("x\0y")])])
def test_a_zero_byte_in_one_of_several_paths_is_refused(call):
    with pytest.raises(InputError, match=r"^paths_of: (places|more): 'x\\x00y' contains a zero byte"):
        call(checked_call(paths_of))


def test_arrays_and_mappings_are_left_to_the_function():
    array, options = np.arange(3), {"a": np.int64(1)}
    result = public(Path("p"), np.int32(2), 1, values=array, options=options)
    assert result[:3] == (Path("p"), 2, 1)
    assert result[5] is array
    assert type(result[6]["a"]) is int


def test_an_array_whose_type_is_an_alias_is_left_to_the_function_too():
    def call(values: Sequence[float] | Rows[float] | None):
        return values

    array = np.zeros((0, 3))
    assert checked_call(call)(array) is array


def test_a_call_with_wrong_arguments_raises_the_error_of_python():
    with pytest.raises(TypeError, match="unexpected keyword argument 'nothing'"):
        public(nothing=1)


def test_typed_names_of_code_are_consented_to_unless_they_are_paths():
    public("my_path:name", mode="my_losses:mine")
    assert consent.is_consented("my_losses:mine")
    assert not consent.is_consented("my_path:name")
    checked_call(function)(mode="my_losses:other")
    assert not consent.is_consented("my_losses:other")


def test_a_wrapper_is_pickled_by_its_public_name():
    assert checked(function, __name__, "public") is public
    assert (public.__module__, public.__qualname__) == (__name__, "public")
    with pytest.raises(InputError, match=r"^function: count has type str"):
        checked_call(function)(count="1")
    assert pickle.dumps(plain)


def with_callback(name: str | None = None, on_note: Callable[[str], None] | None = None, output: Path = Path()):
    raise OSError(errno.ENOSPC, "No space left on device", os.fspath(output))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"on_note": 5}, "^f: on_note has type int; pass a function or None$"),
        ({"name": ""}, "^f: name is empty; pass a name or None$"),
        ({"name": "\ud800"}, r"^f: name: '\\ud800' contains characters that are not Unicode; pass valid text$"),
        (
            {"output": "a\0b"},
            r"^f: output: 'a\\x00b' contains a zero byte, which file names cannot contain; pass another path$",
        ),
        ({"output": Path("a\nb")}, r"^a\\nb: cannot be read or written \(No space left on device\); "),
    ],
)
def test_what_cannot_be_called_named_or_written_is_one_line(arguments, message):
    with pytest.raises(InputError, match=message):
        checked(with_callback, __name__, "f")(**arguments)


def test_an_empty_path_that_must_be_passed_cannot_be_none():
    def needed(path: str | Path):
        return path

    with pytest.raises(InputError, match=r"^needed: path is empty; pass a path$"):
        checked(needed, __name__, "needed")("")


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Sequence[str | os.PathLike[str]], "names or paths"),
        (Sequence[str | int | float | None], "names, whole numbers, numbers or None"),
    ],
)
def test_a_list_is_described_by_its_items(kind, words):
    def listed(items):
        return items

    listed.__annotations__ = {"items": kind}
    with pytest.raises(InputError, match=f"^listed: items has type list of Kind; pass {words}$"):
        checked(listed, __name__, "listed")([Kind()])


def test_an_error_of_the_system_without_a_path_has_a_subject():
    assert in_words(OSError(errno.ENOSPC, "No space left on device")) == (
        "a file cannot be read or written (No space left on device); pass another path, or change the permissions of "
        "the file"
    )


def test_a_closed_pipe_stays_a_closed_pipe():
    def closed():
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        checked(closed, __name__, "closed")()


@pytest.mark.parametrize(
    "arguments",
    [
        *({"names": names} for names in ("a", ("a",), {"a"}, {"a": 1}.keys(), iter(["a"]), np.array(["a"]))),
        *({"sizes": sizes} for sizes in ((), [1], (1, 2, 3))),
        {"pair": [1, np.int64(2)]},
    ],
)
def test_items_come_in_any_container_of_the_right_length(arguments):
    public(**arguments)
