"""Type checks of the arguments of public functions.

NumPy values become Python values. Wrong types, and numbers outside of the `Interval` of an argument, raise InputError.
An OSError of the function, except for a closed pipe, becomes an InputError as well.

`checked` also consents to external code (`module:name`) among the arguments, because a person typed its name.
"""

import inspect
import numbers
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cache, wraps
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import numpy as np
from annotated_types import Interval

from aadml.feature_extraction.ground.consent import consent_to, named_in, place_of, trusting
from aadml.feature_extraction.ground.contracts import unaliased
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.option_types import possible
from aadml.feature_extraction.ground.options import as_yaml

F = TypeVar("F", bound=Callable[..., Any])

_UNCHECKED = {Any, Mapping, np.ndarray}  # types that functions check themselves
_ABSTRACT: Mapping[object, type] = {int: numbers.Integral, float: numbers.Real}
_WORDS: Mapping[object, str] = {
    str: "text",
    os.PathLike: "a path",
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    NoneType: "None",
    Callable: "a function",
}
_PLURALS: Mapping[object, str] = {os.PathLike: "paths", int: "whole numbers", float: "numbers", NoneType: "None"}


@cache
def checked(function: F, home: str, name: str) -> F:
    """Wrap a public function in a check of the types of its arguments.

    Texts, paths, numbers, functions and classes are checked, alone or as items of a list. The function itself checks
    mappings, arrays and the values of a `Literal`. Messages describe a class by its attribute `IN_WORDS`, or else
    by its name.

    Args:
        function: function to wrap. A second call with equal arguments returns the same wrapper.
        home: module that has the wrapper as an attribute.
        name: name of that attribute.
    """
    call = _wrapped(function, name, typed=True)
    call.__module__, call.__qualname__ = home, name  # so that pickle can look up the function
    return call


def checked_call(function: F) -> F:
    """Decorate a public function or method with the checks of `checked`."""
    return _wrapped(function, function.__qualname__.removesuffix(".__init__"))


def with_consent(*files: str) -> Callable[[F], F]:
    """Return a decorator like `checked_call`, for functions that read files with names of external code.

    A call of the decorated function with `trust_code=True` consents to external code that is named in files.

    Args:
        files: names of the arguments that are files or folders. A message on missing consent contains the first of
            these files that is passed.
    """
    return lambda function: _wrapped(function, function.__name__, files=files)


def _wrapped(function: F, name: str, *, typed: bool = False, files: Sequence[str] = ()) -> F:
    @wraps(function)
    def call(*positional: Any, **named: Any) -> Any:
        signature, kinds = _signature(function)
        try:
            bound = signature.bind(*positional, **named)
        except TypeError:
            return function(*positional, **named)  # raises Python's own TypeError
        for argument, value in bound.arguments.items():
            hint = kinds.get(argument, ())
            elements = [each for kind in hint for item in get_args(kind) for each in _alternatives(item)]
            for text in value if isinstance(value, list | tuple) else (value,):
                _check_text(f"{name}: {argument}", text, is_path=os.PathLike in (*hint, *elements))
            types = {get_origin(kind) or kind for kind in hint}
            if types and np.ndarray not in types:
                bound.arguments[argument] = value = plain(value)
            if _is_checked(types):
                several = signature.parameters[argument].kind is inspect.Parameter.VAR_POSITIONAL
                for element in value if several else (value,):
                    _check(f"{name}: {argument}", element, hint)
            if argument in (bounds := _bounds(function)) and isinstance(value, int | float):
                _check_bounds(f"{name}: {argument}", value, bounds[argument])
            if typed:
                consent_to(value, paths=os.PathLike in hint)
        places = (place for key in files if isinstance(place := bound.arguments.get(key), str | os.PathLike))
        consent = bool(files) and bound.arguments.get("trust_code", False)
        try:
            with trusting(consent), named_in(next(places, "")):
                return function(*bound.args, **bound.kwargs)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise InputError(in_words(error)) from error

    return cast(F, call)


def in_words(error: OSError) -> str:
    """Return a message on an operating-system error, with the path of the file if the error contains a path."""
    place = "a file" if error.filename is None else f"{os.fsdecode(error.filename)}:"
    return (
        f"{place} cannot be read or written ({error.strerror or error}); pass another path, or change the permissions "
        "of the file"
    )


def _check_text(place: str, value: object, *, is_path: bool) -> None:
    """Raise InputError for a text or path that cannot be encoded, or for a path with a zero byte."""
    if not isinstance(value, str | os.PathLike):
        return
    text = os.fspath(value)
    if is_path and "\0" in str(text):
        raise InputError(
            f"{place}: {str(text)!r} contains a zero byte, which file names cannot contain; pass another path"
        )
    try:
        os.fsencode(text)  # file names that are not UTF-8 are valid
    except UnicodeEncodeError as error:
        raise InputError(f"{place}: {str(text)!r} contains characters that are not Unicode; pass valid text") from error


def plain(value: Any) -> Any:
    """Convert NumPy values and fractions to plain Python values, and paths that are values of mappings to strings.

    Args:
        value: scalar, array, or mapping, list or tuple of these. Arrays become lists, and any other value is
            returned unchanged.
    """
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, Fraction):
        return float(value)
    if isinstance(value, Mapping):
        return {plain(key): str(item) if isinstance(item, Path) else plain(item) for key, item in value.items()}
    return type(value)(map(plain, value)) if type(value) in (list, tuple) else value


@cache  # at the first call, as types may be defined after the function
def _signature(function: Callable[..., Any]) -> tuple[inspect.Signature, dict[str, tuple[object, ...]]]:
    """Return the signature of a function and the alternatives of the type of each annotated argument."""
    hints = get_type_hints(function)
    return inspect.signature(function), {key: _alternatives(hint) for key, hint in hints.items() if key != "return"}


@cache
def _bounds(function: Callable[..., Any]) -> dict[str, Interval]:
    """Return the range of each argument whose type, or an alternative of its type, has an `Interval`."""
    hints = get_type_hints(function, include_extras=True)
    parts = [(key, part) for key, hint in hints.items() for part in (hint, *get_args(hint))]
    marks = [(key, mark) for key, part in parts if get_origin(part) is Annotated for mark in part.__metadata__]
    return {key: mark for key, mark in marks if isinstance(mark, Interval)}


def _check_bounds(place: str, value: float, bounds: Interval) -> None:
    above = value >= bounds.ge if bounds.gt is None else value > bounds.gt  # type: ignore[operator]
    below = value <= bounds.le if bounds.lt is None else value < bounds.lt  # type: ignore[operator]
    if not (above and below):
        raise InputError(f"{place} is {as_yaml(value)}; pass {possible(Annotated[float, bounds])}")


def _alternatives(hint: object) -> tuple[object, ...]:
    """Return the members of a union, or the single type; paths become `os.PathLike`."""
    hint = unaliased(hint)
    if get_origin(hint) in (Union, UnionType):
        return tuple(each for kind in get_args(hint) for each in _alternatives(kind))
    return (os.PathLike if hint is Path or get_origin(hint) is os.PathLike else hint,)


def _is_checked(types: Collection[object]) -> bool:
    return bool(types) and not _UNCHECKED & {*types} and all(isinstance(t, type) or t is Literal for t in types)


def _check(place: str, value: object, kinds: tuple[object, ...]) -> None:
    if not any(_is_of(value, kind) for kind in kinds):
        words = _one_of(map(_in_words, kinds)) + _code_hint(value, kinds)
        raise InputError(f"{place} has type {_type_of(value, kinds)}; pass {words}")
    if isinstance(value, str) and not value and os.PathLike in kinds:
        raise InputError(f"{place} is empty; pass a path{' or None' if NoneType in kinds else ''}")
    if value == "" and {*kinds} == {str, NoneType}:
        raise InputError(f"{place} is empty; pass a name or None")


def _code_hint(value: object, kinds: tuple[object, ...]) -> str:
    """Return a hint on how to pass a function or class, alone or in a list, by its name as text.

    The hint is "" for values without a function or class, and for arguments that do not accept text.
    """
    code = next((item for item in (value if isinstance(value, list | tuple) else [value]) if callable(item)), None)
    if code is None or str not in (*kinds, *(part for kind in kinds for part in get_args(kind))):
        return ""
    name = f"'{place_of(code)}'" if place_of(code) else "'module:name', at the top level of a module"
    return f"; name code of your own as {name} (see docs/extending.md)"


def _type_of(value: object, kinds: tuple[object, ...]) -> str:
    name, is_listed = type(value).__name__, any(isinstance(get_origin(kind), type) for kind in kinds)
    items = {type(item).__name__ for item in value} if is_listed and isinstance(value, list | tuple | set) else ()
    return f"{name} of {' and '.join(sorted(items))}" if items else name


def _is_of(value: object, kind: object) -> bool:
    origin = get_origin(kind) or kind
    if origin is Literal:
        return any(isinstance(value, type(choice)) for choice in get_args(kind))
    if isinstance(value, bool):
        return origin is bool
    if origin is Callable:
        return callable(value)
    if isinstance(get_origin(kind), type):
        if origin is tuple and not _has_length(value, kind):
            return False
        elements = [element for hint in get_args(kind)[:1] for element in _alternatives(hint)]
        if isinstance(value, bytes) or not isinstance(value, Collection):
            return hasattr(value, "__iter__") and not isinstance(value, bytes)
        try:
            content = [*value] if _is_checked({get_origin(each) or each for each in elements}) else []
        except TypeError:  # a tensor without dimensions
            return False
        return all(any(_is_of(element, each) for each in elements) for element in content)
    expected = _ABSTRACT.get(origin, origin)
    return isinstance(expected, type) and isinstance(value, expected)


def _has_length(value: object, kind: object) -> bool:
    """Return whether a value is a list or tuple with the length of a tuple type (any length for `tuple[T, ...]`)."""
    return isinstance(value, list | tuple) and (Ellipsis in get_args(kind) or len(value) == len(get_args(kind)))


def _one_of(words: Iterable[str]) -> str:
    *others, last = dict.fromkeys(words)
    return f"{', '.join(others)} or {last}" if others else last


def _in_words(kind: object) -> str:
    if get_origin(kind) is Literal:
        return f"one of {', '.join(map(repr, get_args(kind)))}"
    if get_origin(kind) is tuple and Ellipsis not in get_args(kind):
        return f"({', '.join(map(_in_words, get_args(kind)))})"
    if get_origin(kind) not in (None, Callable):
        elements = [element for hint in get_args(kind)[:1] for element in _alternatives(hint)]
        return _one_of(_PLURALS.get(element, "names") for element in elements)
    return str(
        getattr(kind, "IN_WORDS", None) or _WORDS.get(get_origin(kind) or kind) or getattr(kind, "__name__", kind)
    )
