"""Markers of option types, beside the constraints of `annotated_types`, and what a type makes possible, in words."""

import re
import types
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, GroupedMetadata, Gt, Le, Lt, MaxLen, MinLen, MultipleOf, Unit

from aadml.feature_extraction.ground.json_values import Json


@dataclass(frozen=True, init=False)
class Choice:
    """Marks a word that must be one of a table's names.

    Attributes:
        names: that are possible.
    """

    names: tuple[str, ...]

    def __init__(self, table: Iterable[str]) -> None:
        object.__setattr__(self, "names", tuple(table))

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """Tell pydantic, where it is there, that nothing else is valid."""
        from pydantic_core import core_schema

        return core_schema.literal_schema(list(self.names))


@dataclass(frozen=True)
class Written:
    """Marks a word that must begin in a certain way.

    Attributes:
        prefix: how.
        form: the whole of it, for people.
    """

    prefix: str
    form: str

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """Tell pydantic, where it is there, that nothing else is valid."""
        from pydantic_core import core_schema

        return core_schema.str_schema(pattern=f"^{re.escape(self.prefix)}.", strict=True)


@dataclass(frozen=True, init=False)
class Tuning:
    """Marks the values that a search with equal budgets tries; what is valid is another matter.

    Attributes:
        values: to try.
    """

    values: tuple[Json, ...]

    def __init__(self, *values: Json) -> None:
        object.__setattr__(self, "values", values)


@dataclass(frozen=True, init=False)
class OnlyWith:
    """Marks an option that acts only where another one of its entry has one of some values.

    Attributes:
        option: the other one's name.
        values: with which it acts.
    """

    option: str
    values: tuple[Json, ...]

    def __init__(self, option: str, *values: Json) -> None:
        object.__setattr__(self, "option", option)
        object.__setattr__(self, "values", values)

    def __str__(self) -> str:
        *others, last = map(str, self.values)
        return f"{self.option} {', '.join(others)} or {last}" if others else f"{self.option} {last}"


@dataclass(frozen=True)
class NoOption:
    """Marks an argument that is not an option: whoever builds the entry knows its value."""


@dataclass(frozen=True)
class OwnSection:
    """Marks an argument that is not an option of its entry but a section of the config, of the argument's name."""


@dataclass(frozen=True)
class Unbounded:
    """Marks a number that may be any finite one; every other number has two bounds."""


def leaves(kind: Any, metadata: tuple[object, ...] = ()) -> Iterator[tuple[Any, tuple[object, ...]]]:
    """Walk through unions and tuples: (plain type or Literal, its metadata) for each type that a value may have."""
    origin = get_origin(kind)
    if origin is Annotated:
        yield from leaves(get_args(kind)[0], (*metadata, *metadata_of(kind)))
    elif origin in (Union, types.UnionType):
        for one in get_args(kind):
            yield from leaves(one)
    elif origin is tuple:
        for one in dict.fromkeys(get_args(kind)):
            if one is not Ellipsis:
                yield from leaves(one)
    else:
        yield kind, metadata


def metadata_of(kind: Any) -> tuple[object, ...]:
    """Give the metadata of an annotated type, groups (`Interval`, `Len`) as their parts; none of any other type."""
    if get_origin(kind) is not Annotated:
        return ()
    parts: list[object] = []
    for one in get_args(kind)[1:]:
        parts += list(one) if isinstance(one, GroupedMetadata) else [one]
    return tuple(parts)


def is_bounded(metadata: Iterable[object]) -> bool:
    """Say whether a number has both bounds."""
    bounds = list(metadata)
    return any(isinstance(one, Gt | Ge) for one in bounds) and any(isinstance(one, Lt | Le) for one in bounds)


def possible(kind: Any) -> str:
    """Say in words which values a type makes possible."""
    origin, metadata = get_origin(kind), metadata_of(kind)
    plain = get_args(kind)[0] if origin is Annotated else kind
    origin = get_origin(plain)
    if choice := next((one for one in metadata if isinstance(one, Choice)), None):
        return _one_of(choice.names)
    if written := next((one for one in metadata if isinstance(one, Written)), None):
        return written.form
    if origin is Literal:
        return _one_of(get_args(plain))
    if origin in (Union, types.UnionType):
        return " or ".join(possible(one) for one in get_args(plain))
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
    for one in metadata:
        if isinstance(one, Gt | Ge):
            words.append(f"above {one.gt:g}" if isinstance(one, Gt) else f"from {_plain(one.ge)}")
        elif isinstance(one, Lt | Le):
            words.append(f"to below {one.lt:g}" if isinstance(one, Lt) else f"to {_plain(one.le)}")
        elif isinstance(one, MultipleOf):
            words.append(f"that {_plain(one.multiple_of)} divides")
        elif isinstance(one, Unit):
            words.insert(1, f"({one.unit})")
    return " ".join(words)


def _plain(bound: Any) -> str:
    return str(bound) if isinstance(bound, int) else f"{bound:g}"


def _list(items: tuple[Any, ...], metadata: tuple[object, ...]) -> str:
    if items[-1] is not Ellipsis:
        return f"a list of {len(items)}, each {possible(items[0])}"
    least = next((one.min_length for one in metadata if isinstance(one, MinLen)), 0)
    most = next((one.max_length for one in metadata if isinstance(one, MaxLen)), None)
    count = f"{least} or more" if most is None else str(least) if least == most else f"{least} to {most}"
    return f"a list of {count}, each {possible(items[0])}"
