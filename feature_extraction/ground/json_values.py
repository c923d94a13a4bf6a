"""JSON as a type, access to nested values, and validation of records against dataclasses."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from aadml.feature_extraction.ground.errors import DamagedFileError, InputError

T = TypeVar("T")

if TYPE_CHECKING:
    Json: TypeAlias = "Mapping[str, Json] | Sequence[Json] | str | float | int | bool | None"
else:
    Json = object  # annotations are resolved at run time, where an alias cannot refer to itself
"""Any value of JSON or YAML; tuples are written as lists."""
JsonObject: TypeAlias = Mapping[str, Json]
"""JSON values by name."""


def parse_object(text: str | bytes, place: str | Path) -> dict[str, Json]:
    """Parse a JSON object.

    Args:
        text: content of the file.
        place: path of the file, for messages.

    Raises:
        DamagedFileError: `text` is not a JSON object.
    """
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DamagedFileError(
            f"{place} is damaged, as its content is not JSON ({error}); restore the file from a copy"
        ) from error
    if not isinstance(content, dict):
        raise DamagedFileError(f"{place} is damaged, as its content is not a JSON object; restore the file from a copy")
    return content


def to_bytes(content: object) -> bytes:
    """Return JSON values as the bytes of an indented text."""
    return (json.dumps(content, indent=2) + "\n").encode()


def inner(content: object, *path: str) -> object:
    """Return the value at a path of keys; None for a missing key or a parent other than an object."""
    for key in path:
        content = content.get(key) if isinstance(content, Mapping) else None
    return content


def texts(value: object) -> list[str]:
    """Return the items of a JSON list as strings; [] for any other value."""
    return [str(item) for item in value] if isinstance(value, list | tuple) else []


def nested(content: object, *path: str) -> JsonObject:
    """Return the object at a path of keys; an empty object if there is none."""
    value = inner(content, *path)
    return value if isinstance(value, Mapping) else {}


def typed(content: object, key: str, kind: type[T]) -> T:
    """Return the value of `key` in a JSON object; the value must be of type `kind`.

    Raises:
        InputError: the key is missing, or its value has another type.
    """
    value = inner(content, key)
    if isinstance(value, kind):
        return value
    actual = "missing or null" if value is None else repr(str(value)[:40])
    raise InputError(
        f"{key} is {actual}, but must be of type {kind.__name__}; restore the file with this value from a copy"
    )


def read_as(kind: Callable[..., T], content: object, place: str | Path) -> T:
    """Build an instance of a dataclass from a JSON object, and validate the values against the field types.

    Args:
        kind: a dataclass; fields may be dataclasses, mappings, tuples, lists and unions of these.
        content: plain values, as returned by `json.loads`.
        place: path of the file, for messages.

    Raises:
        DamagedFileError: a field is missing or unknown, or its value has another type.
    """
    return parse_as(kind, json.dumps(content, ensure_ascii=False).encode(errors="replace"), place)  # any file name


def parse_as(kind: Callable[..., T], text: bytes, place: str | Path) -> T:
    """Build a dataclass from the UTF-8 text of a JSON object; see `read_as` for the other arguments and the error."""
    from pydantic import ValidationError

    try:
        (record,) = _adapter(kind).validate_json(b"[%s]" % text)
    except ValidationError as error:
        first = error.errors()[0]
        # earlier versions of pydantic add the names of their validators, which have brackets
        key = ".".join([kind.__name__, *(part for part in map(str, first["loc"][1:]) if "[" not in part)])
        value = "" if first["type"] == "missing" else f", not {str(first['input'])[:40]!r}"
        raise DamagedFileError(
            f"{place} is of another version, or is damaged ({key}: {first['msg']}{value}); use the version of "
            "aadml that wrote the file, or restore the file from a copy"
        ) from error
    built: T = record
    return built


@cache
def _adapter(kind: Callable[..., object]) -> Any:
    from pydantic import ConfigDict, TypeAdapter

    config = ConfigDict(strict=True, extra="forbid")  # dataclasses inherit the config only from an enclosing type
    return TypeAdapter(tuple[kind], config=config)  # type: ignore[valid-type]
