"""Calls from Python, at the door: NumPy values become Python's, and arguments of a wrong type are refused in one line.

Names of code from outside (`module:name`) among the arguments are consented to: a person typed them.
"""

import inspect
import numbers
import os
from collections.abc import Callable, Mapping
from functools import cache, wraps
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import numpy as np

from aadml.feature_extraction.ground.consent import consent_to
from aadml.feature_extraction.ground.errors import InputError

F = TypeVar("F", bound=Callable[..., Any])

_LEFT = {Any, Mapping, Callable, np.ndarray}  # kinds that a function looks at by itself
_KINDS: Mapping[object, type] = {int: numbers.Integral, float: numbers.Real}
_WORDS: Mapping[object, str] = {
    str: "text",
    os.PathLike: "a path",
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    NoneType: "None",
}


@cache
def checked(function: F, home: str, name: str) -> F:
    """Give a function that looks at the types of its arguments before it does anything.

    Texts, paths, numbers and classes are looked at; arrays, mappings, functions and what they hold are left to the
    function. A class may say by an attribute IN_WORDS how messages name it.

    Args:
        function: a public one; the same one is given for the same function.
        home: the module of which it is an attribute.
        name: of that attribute.
    """
    call = _looking(function, name, typed=True)
    call.__module__, call.__qualname__ = home, name  # where pickle finds it
    return call


def checked_call(function: F) -> F:
    """Decorate a public function or method, by whose own name its arguments are looked at; see `checked`."""
    return _looking(function, function.__qualname__.removesuffix(".__init__"))


def _looking(function: F, name: str, *, typed: bool = False) -> F:
    @wraps(function)
    def call(*positional: Any, **named: Any) -> Any:
        signature, kinds = _door(function)
        try:
            bound = signature.bind(*positional, **named)
        except TypeError:
            return function(*positional, **named)  # which refuses the call
        for argument, value in bound.arguments.items():
            hint = kinds.get(argument, ())
            if not _takes_arrays(hint):
                bound.arguments[argument] = value = plain(value)
            several = signature.parameters[argument].kind is inspect.Parameter.VAR_POSITIONAL
            for element in value if several else (value,):
                if _is_plain(hint):
                    _check(f"{name}: {argument}", element, hint)
            if typed and os.PathLike not in hint:
                consent_to(value)
        return function(*bound.args, **bound.kwargs)

    return cast(F, call)


def plain(value: Any) -> Any:
    """Return a value with what is of NumPy in it, and paths in mappings, as Python's own types.

    Args:
        value: a scalar, an array, or mappings and sequences of them; anything else is returned as it is.
    """
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return {plain(key): str(one) if isinstance(one, Path) else plain(one) for key, one in value.items()}
    return type(value)(map(plain, value)) if type(value) in (list, tuple) else value


@cache  # at the first call: types may be defined after the function
def _door(function: Callable[..., Any]) -> tuple[inspect.Signature, dict[str, tuple[object, ...]]]:
    """Return a function's signature, and the kinds that each of its arguments may be of."""
    hints = get_type_hints(function)
    return inspect.signature(function), {key: _kinds(hint) for key, hint in hints.items() if key != "return"}


def _kinds(hint: object) -> tuple[object, ...]:
    """List the kinds of a union; any way to write a path is one."""
    kinds = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    return tuple(os.PathLike if kind is Path or get_origin(kind) is os.PathLike else kind for kind in kinds)


def _is_plain(kinds: tuple[object, ...]) -> bool:
    """Return whether the type of an argument is checked here."""
    origins = [get_origin(kind) or kind for kind in kinds]
    return bool(kinds) and all(isinstance(one, type) or one is Literal for one in origins) and not _LEFT & {*origins}


def _takes_arrays(kinds: tuple[object, ...]) -> bool:
    return not kinds or np.ndarray in [get_origin(kind) or kind for kind in kinds]


def _check(place: str, value: object, kinds: tuple[object, ...]) -> None:
    if not any(_is_of(value, kind) for kind in kinds):
        wanted = [*dict.fromkeys(_in_words(kind) for kind in kinds)]
        possible = f"possible {'are' if len(wanted) > 1 else 'is'} {', '.join(wanted)}"
        raise InputError(f"{place} of type {type(value).__name__}; {possible}")
    if isinstance(value, str) and not value and os.PathLike in kinds:
        raise InputError(f"{place} is empty; give a path, or leave it out")


def _is_of(value: object, kind: object) -> bool:
    origin = get_origin(kind) or kind
    if origin is Literal:
        return any(isinstance(value, type(choice)) for choice in get_args(kind))
    if isinstance(value, bool):
        return origin is bool
    if isinstance(get_origin(kind), type):
        elements = [element for hint in get_args(kind)[:1] for element in _kinds(hint)]
        if isinstance(value, list | tuple) and _is_plain(tuple(elements)):
            return all(any(_is_of(element, each) for each in elements) for element in value)
        return hasattr(value, "__iter__") and not isinstance(value, bytes)
    found = _KINDS.get(origin, origin)
    return isinstance(found, type) and isinstance(value, found)


def _in_words(kind: object) -> str:
    if get_origin(kind) is Literal:
        return ", ".join(map(repr, get_args(kind)))
    if get_origin(kind):
        return "names"
    return str(getattr(kind, "IN_WORDS", None) or _WORDS.get(kind) or getattr(kind, "__name__", kind))
