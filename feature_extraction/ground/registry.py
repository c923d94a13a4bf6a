"""Registries of entries by name; each entry is imported on first use."""

import difflib
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.metadata import EntryPoint, distributions, entry_points
from typing import Any, TypeVar

from aadml.feature_extraction.ground import consent
from aadml.feature_extraction.ground.consent import is_place
from aadml.feature_extraction.ground.contracts import require_contract
from aadml.feature_extraction.ground.errors import InputError, UntrustedCodeError
from aadml.feature_extraction.ground.import_paths import (
    first_line,
    imported,
    imported_from_outside,
    imported_with_consent,
)

T = TypeVar("T")

OWN = "aadml"
"""Origin of the entries of this project."""

_SIMILAR = 0.6
"""Minimum similarity of a suggestion, as defined by `difflib`."""


def nearest(name: str, choices: Iterable[str]) -> str:
    """Return the choice with the most similar spelling; "" if no choice is similar."""
    matches = difflib.get_close_matches(name, list(choices), n=1, cutoff=_SIMILAR)
    return matches[0] if matches else ""


def suggestion(name: object, choices: Iterable[str]) -> str:
    """Return a hint for an invalid name: the most similar choice, or all choices if no choice is similar.

    Without choices, the hint is "there are none".
    """
    known = list(choices)
    near = nearest(name, known) if isinstance(name, str) else ""
    if near:
        return f"did you mean '{near}'?"
    return f"choose from {', '.join(known)}" if known else "there are none"


def lookup(table: Mapping[str, T], name: str, kind: str) -> T:
    """Return the entry `name` of a registry; `kind` ("loss") is the noun for the entry in messages.

    Raises:
        InputError: an unknown entry, with all names in the message, or external code that cannot be used.
    """
    require_entry(table, name, kind)
    return table[name]


def require_entry(table: Mapping[str, T], name: str, kind: str) -> None:
    """Raise InputError if a name is not in a registry. The entry is not imported; see `lookup` for the arguments."""
    if isinstance(name, str) and name in table:
        return
    near = nearest(name, table) if isinstance(name, str) else ""
    hint = f"did you mean '{near}'? Choose from " if near else "choose from "
    raise InputError(f"there is no {kind} {name!r}; {hint}{', '.join(table)}")


@dataclass(frozen=True)
class RegistryEntry:
    """Description of an entry.

    Attributes:
        name: name of the entry.
        description: first line of its documentation; "" without documentation.
        place: import path "package.module:name".
        origin: "aadml", or name and version of the installed package that defines the entry ("an installed package" if
            they are unknown).
    """

    name: str
    description: str
    place: str
    origin: str


class Registry(Mapping[str, T]):
    """Entries by name: entries of this project, and entries from the entry points of installed packages.

    The import path "package.module:name" of an object that is not listed is also a valid name. The import of such
    an object needs consent (see `consent.py`). An entry point is listed by its import path if another entry has the
    same name.

    Args:
        kind: kind of the entries, for messages ("loss").
        places: name -> "package.module:name".
        group: group of entry points, listed after the entries of this project; None if there is no group.
        of: import path of the contract of the entries (see `contracts.py`); None for any callable.
    """

    def __init__(
        self, kind: str, places: Mapping[str, str], *, group: str | None = None, of: str | None = None
    ) -> None:
        self.kind = kind
        self.places = dict(places)
        self.group = group
        self._of = of

    def __getitem__(self, name: str) -> T:
        if name in self.places:
            entry: T = imported(self.places[name])
            return entry
        brought = self._brought()
        if name in brought:
            return self._from_outside(_place_of(brought[name]), imported_from_outside)
        if is_place(name):
            consented = partial(imported_with_consent, kind=self.kind)
            return self._from_outside(name, consented if self.is_outside(name) else imported_from_outside)
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (name in self.places or is_place(name) or name in self._brought())

    def __iter__(self) -> Iterator[str]:
        yield from self.places
        yield from self._brought()

    def __len__(self) -> int:
        return len(self.places) + len(self._brought())

    def is_outside(self, name: str) -> bool:
        """Return whether `name` is an import path "module:name" without a listed entry."""
        installed = [*self.places.values(), *map(_place_of, self._brought().values())]
        return is_place(name) and name not in self._brought() and name not in installed

    def is_own(self, name: str) -> bool:
        """Return whether `name` is the name or the import path of an entry of this project."""
        return name in self.places or name in self.places.values()

    def listed(self) -> list[RegistryEntry]:
        """Return descriptions of all entries, without importing them."""
        entries = [RegistryEntry(name, first_line(place), place, OWN) for name, place in self.places.items()]
        for name, point in self._brought().items():
            place = _place_of(point)
            package = f"{point.dist.name} {point.dist.version}" if point.dist else "an installed package"
            entries.append(RegistryEntry(name, first_line(place), place, package))
        return entries

    def _brought(self) -> dict[str, EntryPoint]:
        if self.group is None:
            return {}
        points = {_place_of(point): point for point in _points(self.group, tuple(sys.path))}
        counts = Counter([*self.places, *(point.name for point in points.values())])
        return {point.name if counts[point.name] == 1 else place: point for place, point in points.items()}

    def _from_outside(self, place: str, imports: Callable[[str], Any]) -> T:
        near = nearest(place, self)
        hint = f"; did you mean '{near}'?" if near and near != place else ""
        try:
            entry = imports(place)
        except InputError as error:
            kind = "" if isinstance(error, UntrustedCodeError) else f"{self.kind} "
            raise type(error)(f"{kind}{error}{hint}") from error
        require_contract(entry, imported(self._of) if self._of is not None else None, self.kind, place)
        result: T = entry
        return result


class JoinedRegistry(Mapping[str, T]):
    """Union of registries; the first of several entries with the same name takes precedence.

    Args:
        tables: registries in order.
    """

    def __init__(self, *tables: Mapping[str, T]) -> None:
        self._tables = tables

    def __getitem__(self, name: str) -> T:
        for table in self._tables:
            if name in table:
                return table[name]
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        return any(name in table for table in self._tables)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(name for table in self._tables for name in table))

    def __len__(self) -> int:
        return len(list(iter(self)))


@lru_cache(maxsize=64)
def _points(group: str, path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """Return the entry points of a group, without the entry points of packages in `consent.folders`.

    The result is cached, because reading the entry points of all packages is slow.
    """
    if not consent.folders:
        return tuple(entry_points(group=group))
    packages = distributions(path=[folder for folder in path if folder not in consent.folders])
    return tuple(point for package in packages for point in package.entry_points.select(group=group))


def _place_of(point: EntryPoint) -> str:
    return f"{point.module}:{point.attr}"
