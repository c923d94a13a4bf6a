"""Validation of what comes from outside against the options of the function or class that it is for.

Values are judged by pydantic, strictly and as JSON: a list fits a tuple and 1 fits a float, but "3" is not a number and
true is not a count. Pydantic is imported here alone, when the first value is checked; a refusal is worded here too.
"""

import json
from collections.abc import Callable, Container
from contextlib import suppress
from functools import cache
from typing import Any, TypeVar

from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import Json, JsonObject
from aadml.feature_extraction.ground.option_types import possible
from aadml.feature_extraction.ground.options import as_yaml, completed, schema

T = TypeVar("T")


def checked_options(
    entry: Callable[..., object], given: JsonObject, where: str, *, name: str = "", without: Container[str] = ()
) -> dict[str, Json]:
    """Check `given` against the options of an entry, and complete it with their defaults.

    Args:
        entry: its annotated keyword-only arguments are the schema.
        given: what was given.
        where: the config section, for the message ("loss"); "" for keys that stand in no section.
        name: of the entry, for the message; that of the function by default.
        without: options that are not for the user to choose.

    Returns:
        Every option of the entry, in its order.

    Raises:
        InputError: an option that the entry does not take, a missing one, or a value that is not possible.
    """
    complete = completed(entry, given, where, name=name, without=without)
    known = schema(entry)
    prefix = f"{where}." if where else ""
    return complete | {key: checked(known[key].kind, given[key], f"{prefix}{key}") for key in complete if key in given}


def built(kind: Callable[..., T], given: JsonObject, where: str) -> T:
    """Build a dataclass of what was given for a section; see `checked_options`."""
    return kind(**checked_options(kind, given, where, name=where))


def checked(kind: Any, value: Json, key: str) -> Any:
    """Return `value` as the type has it (a list as a tuple, an int as a float).

    Args:
        kind: an annotated type.
        value: plain, as YAML or JSON has it.
        key: of the config, for the message.

    Raises:
        InputError: the value is not possible; the message says what is.
    """
    from pydantic import ValidationError

    try:
        return _adapter(kind).validate_json(json.dumps(value))
    except (ValidationError, TypeError, ValueError, RecursionError) as error:
        written = _as_list(kind, value)
        hint = f"; a list is written {as_yaml(written)}" if written else ""
        raise InputError(f"{key}: {as_yaml(value)} given; {possible(kind)} is possible{hint}") from error


def _as_list(kind: Any, value: Json) -> list[Json]:
    """Give the list that was meant by 32, or by "32,16"; [] where the kind takes no such list."""
    from pydantic import ValidationError

    if value is None or isinstance(value, list | dict):
        return []
    meant: list[Json] = [_read(part) for part in value.split(",")] if isinstance(value, str) else [value]
    try:
        _adapter(kind).validate_json(json.dumps(meant))
    except (ValidationError, ValueError):
        return []
    return meant


def _read(word: str) -> Json:
    value: Json = word.strip()
    with suppress(ValueError, RecursionError):
        value = json.loads(word)
    return value


@cache
def _adapter(kind: Any) -> Any:
    from pydantic import ConfigDict, TypeAdapter

    return TypeAdapter(kind, config=ConfigDict(strict=True, allow_inf_nan=False))
