"""Validation of options from files and command lines against the schema of a function or class.

Pydantic checks values strictly and as JSON. A list is valid for a tuple, and 1 for a float. "3" is not a valid number,
and true is not a valid count. Pydantic is imported at the first check. This module rewords the errors of pydantic.
"""

import json
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any, TypeVar

from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.option_types import possible
from aadml.feature_extraction.ground.options import OptionValues, as_yaml, completed, schema

T = TypeVar("T")


def checked_options(entry: Callable[..., object], given: OptionValues, where: str, *, name: str = "") -> OptionValues:
    """Check options against the schema of an entry, and complete them with their defaults.

    Args:
        entry: function or class whose keyword-only arguments are the schema.
        given: options, whose values are not checked yet.
        where: config section, for messages ("loss"); "" for keys outside of sections.
        name: name of the entry, for messages; the function's name by default.

    Returns:
        Every option of the entry, in its order.

    Raises:
        InputError: an unknown or missing option, an invalid value, or a removed option with a value other than the
            value that the code now implements (see `without_removed`).
    """
    complete = completed(entry, given, where, name=name)
    prefix = f"{where}." if where else ""
    values = {
        key: checked(option.kind, getattr(given, key), f"{prefix}{key}")
        for key, option in schema(entry).items()
        if key in given
    }
    return OptionValues(**vars(complete) | values)


def built(kind: Callable[..., T], given: OptionValues, where: str) -> T:
    """Build a dataclass from the options of a section; see `checked_options`."""
    return kind(**vars(checked_options(kind, given, where, name=where)))


def checked(kind: Any, value: object, key: str) -> Any:
    """Check a value and convert the value to the type `kind`: a list to a tuple, an int to a float.

    Args:
        kind: annotated type.
        value: plain value from YAML or JSON.
        key: key of the config, for messages.

    Raises:
        InputError: the value is invalid; the message describes the valid values.
    """
    try:
        return _parsed(kind, value)
    except (ValueError, TypeError, RecursionError) as error:  # pydantic's ValidationError is a ValueError
        items = _as_list(kind, value)
        hint = f", written as {as_yaml(items)}" if items else ""
        raise InputError(f"{key} is {as_yaml(value)}; pass {possible(kind)}{hint}") from error


def _as_list(kind: Any, value: object) -> list[object]:
    """Return a value such as 32 or "32,16" as a list that is valid for `kind`.

    The result is [] if this list is not valid. The value None, a list or a dict also results in [].
    """
    if value is None or isinstance(value, list | dict):
        return []
    items: list[object] = [_item(part) for part in value.split(",")] if isinstance(value, str) else [value]
    try:
        _parsed(kind, items)
    except (ValueError, TypeError):
        return []
    return items


def _item(word: str) -> object:
    with suppress(ValueError, RecursionError):
        return json.loads(word)
    return word.strip()


def _parsed(kind: Any, value: object) -> Any:
    return _adapter(kind).validate_json(json.dumps(value))


@cache
def _adapter(kind: Any) -> Any:
    from pydantic import ConfigDict, TypeAdapter

    return TypeAdapter(kind, config=ConfigDict(strict=True, allow_inf_nan=False))
