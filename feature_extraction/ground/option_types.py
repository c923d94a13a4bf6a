"""Markers of option types beside the constraints of `annotated_types`, and descriptions of the possible values."""

import re
import types
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin

from annotated_types import Ge, GroupedMetadata, Gt, Le, Lt, MaxLen, MinLen, MultipleOf, Unit

Scalar: TypeAlias = str | float | bool | None
"""Value of an option, other than a list."""


@dataclass(frozen=True, init=False)
class Choice:
    """Marker of a string that must be a name of a registry.

    Attributes:
        names: possible values.
    """

    names: tuple[str, ...]

    def __init__(self, table: Iterable[str]) -> None:
        object.__setattr__(self, "names", tuple(table))

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """Return pydantic's schema, which accepts only the names."""
        from pydantic_core import core_schema

        return core_schema.literal_schema(list(self.names))


@dataclass(frozen=True)
class Written:
    """Marker of a string that must start with a prefix.

    Attributes:
        prefix: start of every value; at least one character follows.
        form: description of the possible values, for messages.
    """

    prefix: str
    form: str

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """Return pydantic's schema, which accepts only strings with the prefix."""
        from pydantic_core import core_schema

        return core_schema.str_schema(pattern=f"^{re.escape(self.prefix)}.", strict=True)


@dataclass(frozen=True, init=False)
class Tuning:
    """Marker of the values that a hyperparameter search tries, a subset of the valid values.

    Attributes:
        values: candidates.
    """

    values: tuple[Scalar, ...]

    def __init__(self, *values: Scalar) -> None:
        object.__setattr__(self, "values", values)


@dataclass(frozen=True, init=False)
class OnlyWith:
    """Marker of an option that has an effect only with some values of another option of the entry.

    Attributes:
        option: name of the other option.
        values: values of the other option with which the marked option has an effect.
    """

    option: str
    values: tuple[Scalar, ...]

    def __init__(self, option: str, *values: Scalar) -> None:
        object.__setattr__(self, "option", option)
        object.__setattr__(self, "values", values)

    def __str__(self) -> str:
        *others, last = map(str, self.values)
        return f"{self.option} {', '.join(others)} or {last}" if others else f"{self.option} {last}"


@dataclass(frozen=True)
class NoOption:
    """Marker of an argument that is not an option. The code that builds the entry passes the argument."""


@dataclass(frozen=True)
class OwnSection:
    """Marker of an argument that is a config section instead of an option; also the base class of section types.

    An argument needs no marker if its type is derived from this class.
    """

    def plain(self) -> object:
        """Return the section as plain values, in the form of config files."""
        return dict(vars(self))


def metadata_of(kind: Any) -> tuple[object, ...]:
    """Return the metadata of an `Annotated` type, with groups (`Interval`, `Len`) expanded; () for any other type."""
    if get_origin(kind) is not Annotated:
        return ()
    parts: list[object] = []
    for marker in get_args(kind)[1:]:
        parts += list(marker) if isinstance(marker, GroupedMetadata) else [marker]
    return tuple(parts)


def possible(kind: Any) -> str:
    """Return a description of the possible values of an annotated type."""
    origin, metadata = get_origin(kind), metadata_of(kind)
    plain = get_args(kind)[0] if origin is Annotated else kind
    origin = get_origin(plain)
    if choice := next((marker for marker in metadata if isinstance(marker, Choice)), None):
        return _one_of(choice.names)
    if form := next((marker.form for marker in metadata if isinstance(marker, Written)), None):
        return form
    if origin is Literal:
        return _one_of(get_args(plain))
    if origin in (Union, types.UnionType):
        return " or ".join(map(possible, get_args(plain)))
    if origin is tuple:
        return _list(get_args(plain), metadata)
    if plain in (int, float):
        return _number("a whole number" if plain is int else "a number", metadata)
    words = {bool: "true or false", str: "text", type(None): "null"}
    return words.get(plain, getattr(plain, "__name__", str(plain)))


def _one_of(names: Iterable[object]) -> str:
    return "one of " + ", ".join(map(str, names))


def _number(noun: str, metadata: tuple[object, ...]) -> str:
    words = [noun]
    for bound in metadata:
        if isinstance(bound, Gt | Ge):
            words.append(f"above {bound.gt:g}" if isinstance(bound, Gt) else f"from {_plain(bound.ge)}")
        elif isinstance(bound, Lt | Le):
            words.append(f"to below {bound.lt:g}" if isinstance(bound, Lt) else f"to {_plain(bound.le)}")
        elif isinstance(bound, MultipleOf):
            words.append(f"that {_plain(bound.multiple_of)} divides")
        elif isinstance(bound, Unit):
            words.insert(1, f"({bound.unit})")
    return " ".join(words)


def _plain(bound: Any) -> str:
    return str(bound) if isinstance(bound, int) else f"{bound:g}"


def _list(items: tuple[Any, ...], metadata: tuple[object, ...]) -> str:
    if items[-1] is not Ellipsis:
        return f"a list of {len(items)}, each {possible(items[0])}"
    least = next((bound.min_length for bound in metadata if isinstance(bound, MinLen)), 0)
    most = next((bound.max_length for bound in metadata if isinstance(bound, MaxLen)), None)
    count = f"{least} or more" if most is None else str(least) if least == most else f"{least} to {most}"
    return f"a list of {count}, each {possible(items[0])}"
