"""JSON as a type, and readers that take typed values and records out of what was parsed."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from aadml.feature_extraction.ground.errors import InputError

T = TypeVar("T")

if TYPE_CHECKING:
    Json: TypeAlias = "Mapping[str, Json] | Sequence[Json] | str | float | int | bool | None"
else:
    Json = object  # annotations are resolved while a module runs, where no name can stand for itself
"""Any value that JSON and YAML can hold; a tuple is a list there."""
JsonObject: TypeAlias = Mapping[str, Json]
"""Values by name."""


def parse_object(text: str | bytes, place: str | Path) -> dict[str, Json]:
    """Read a JSON object; `place` is where it was read, for the message.

    Raises:
        InputError: it is none.
    """
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place}: damaged: not JSON ({error})") from error
    if not isinstance(content, dict):
        raise InputError(f"{place}: damaged: not a JSON object")
    return content


def to_bytes(content: JsonObject) -> bytes:
    """Write a JSON object as files of runs hold it."""
    return (json.dumps(content, indent=2) + "\n").encode()


def inner(content: Json, *path: str) -> Json:
    """Follow keys into nested objects; None where one is missing."""
    for key in path:
        content = content.get(key) if isinstance(content, Mapping) else None
    return content


def number(value: Json) -> float:
    """Return a number; a TypeError where it is none."""
    if isinstance(value, int | float):
        return float(value)
    raise TypeError(f"{value!r} is no number")


def texts(value: Json) -> list[str]:
    """Return a list as strings; an empty one in the place of anything else."""
    return [str(one) for one in value] if isinstance(value, list | tuple) else []


def nested(content: Json, *path: str) -> JsonObject:
    """Follow keys to an object; an empty one where there is none."""
    value = inner(content, *path)
    return value if isinstance(value, Mapping) else {}


def typed(content: JsonObject, key: str, kind: type[T]) -> T:
    """Return the value of a key.

    Raises:
        InputError: it is missing, or of another type.
    """
    value = content.get(key)
    if isinstance(value, kind):
        return value
    raise InputError(f"{key}: {str(value)[:40]!r} given; a value of the type {kind.__name__} is wanted")


def read_as(kind: Callable[..., T], content: Json, place: str | Path) -> T:
    """Build a dataclass from a JSON object: what its fields' types say is wanted, down to the last value.

    Args:
        kind: a dataclass, whose fields may be dataclasses, mappings, tuples, lists and unions of such.
        content: plain values, as `json.loads` gives them.
        place: where they were read, for the message.

    Raises:
        InputError: a field is missing, unknown, or of another type.
    """
    try:
        built: T = _as_type(kind, content, kind.__name__)
    except TypeError as error:
        raise InputError(f"{place}: of another version, or damaged ({' '.join(str(error).split())})") from error
    return built


def _as_type(kind: Any, value: Any, key: str) -> Any:
    origin, parts = get_origin(kind), get_args(kind)
    if is_dataclass(kind):
        return _as_dataclass(kind, value, key)
    if origin in (Union, UnionType):
        return _as_one_of(parts, value, key)
    if origin is Annotated:
        return _as_type(parts[0], value, key)
    if origin is Literal and value in parts:
        return value
    if origin in (list, Sequence, tuple) and isinstance(value, list | tuple):
        kinds = list(parts) if origin is tuple and Ellipsis not in parts else [parts[0]] * len(value)
        if len(kinds) == len(value):
            items = [_as_type(one, item, key) for one, item in zip(kinds, value, strict=True)]
            return tuple(items) if origin is tuple else items
    if origin in (dict, Mapping) and isinstance(value, dict):
        return {_as_type(parts[0], k, key): _as_type(parts[1], item, f"{key}.{k}") for k, item in value.items()}
    wanted = (int, float) if kind is float else kind
    if origin is None and isinstance(value, wanted) and (kind in (bool, object) or not isinstance(value, bool)):
        return value
    raise TypeError(f"{key}: {str(value)[:40]!r} is no {getattr(kind, '__name__', kind)}")


def _as_dataclass(kind: Any, value: Any, key: str) -> Any:
    known = {one.name: one for one in fields(kind)}
    if not isinstance(value, Mapping) or not value.keys() <= known.keys():
        unknown = ", ".join(sorted(value.keys() - known.keys())) if isinstance(value, Mapping) else str(value)[:40]
        raise TypeError(f"{key}: unknown: {unknown}")
    for name, one in known.items():
        if name not in value and one.default is MISSING and one.default_factory is MISSING:
            raise TypeError(f"{key}.{name} is missing")
    kinds = get_type_hints(kind, include_extras=True)
    return kind(**{name: _as_type(kinds[name], inside, f"{key}.{name}") for name, inside in value.items()})


def _as_one_of(kinds: Sequence[Any], value: Any, key: str) -> Any:
    for kind in kinds[:-1]:
        try:
            return _as_type(kind, value, key)
        except TypeError:
            continue
    return _as_type(kinds[-1], value, key)
