"""Tables of what there is to choose from, by name; each entry is imported when it is asked for."""

import difflib
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.metadata import EntryPoint, distributions, entry_points
from typing import Any, TypeVar

from aadml.feature_extraction.ground import consent
from aadml.feature_extraction.ground.consent import UntrustedCodeError, is_place
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.import_paths import (
    first_line,
    imported,
    imported_from_outside,
    imported_with_consent,
)

T = TypeVar("T")

OWN = "aadml"
"""Where the entries of this project come from."""

_SIMILAR = 0.6
"""Share of letters that two spellings must have in common for one to be offered in the place of the other."""


def nearest(name: str, choices: Iterable[str]) -> str:
    """Give the choice that is spelt most like `name`; empty where none is similar."""
    found = difflib.get_close_matches(name, list(choices), n=1, cutoff=_SIMILAR)
    return found[0] if found else ""


def suggestion(name: object, choices: Iterable[str]) -> str:
    """Say what can be written instead of `name`: the nearest choice, or all of them where none is similar."""
    known = list(choices)
    near = nearest(name, known) if isinstance(name, str) else ""
    if near:
        return f"did you mean '{near}'?"
    return f"possible are {', '.join(known)}" if known else "it takes none"


def lookup(table: Mapping[str, T], name: str, kind: str) -> T:
    """Return `table[name]`.

    Raises:
        InputError: no such entry; the message names the nearest one, where there is one, and all there are.
    """
    require_entry(table, name, kind)
    return table[name]


def require_entry(table: Mapping[str, T], name: str, kind: str) -> None:
    """Refuse a name that is not in a table, without importing its entry.

    Raises:
        InputError: as of `lookup`.
    """
    if isinstance(name, str) and name in table:
        return
    near = nearest(name, table) if isinstance(name, str) else ""
    hint = f"did you mean '{near}'? There are: " if near else "there are: "
    raise InputError(f"no {kind} {name!r}; {hint}{', '.join(table)}")


@dataclass(frozen=True)
class RegistryEntry:
    """One line about an entry.

    Attributes:
        name: under which it is chosen.
        description: the first line of its documentation.
        place: "package.module:name" where it is defined.
        origin: "aadml", or the installed package that brings it, with its version.
    """

    name: str
    description: str
    place: str
    origin: str


class Registry(Mapping[str, T]):
    """Entries by name: those of this project, and those that installed packages bring under an entry point.

    Every "package.module:name" is in the table as well, without being listed; it is imported with consent alone (see
    `consent.py`). A name that an installed package gives to its entry and that is taken (by this project, or by another
    package) does not count: that entry has its place as its name.

    Args:
        kind: what an entry is, for messages ("loss").
        places: name -> "package.module:name".
        group: the group of entry points, whose entries are listed after those of this project; None takes none.
        of: the place of the class of the entries; without it an entry is anything that can be called.
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
        """Return whether `name` is a "module:name" of neither this project nor an installed entry point."""
        installed = [*self.places.values(), *map(_place_of, self._brought().values())]
        return is_place(name) and name not in self._brought() and name not in installed

    def is_own(self, name: str) -> bool:
        """Return whether `name` is an entry of this project, or the place of one."""
        return name in self.places or name in self.places.values()

    def listed(self) -> list[RegistryEntry]:
        """Describe every entry; nothing is imported for it."""
        own = [RegistryEntry(name, first_line(place), place, OWN) for name, place in self.places.items()]
        for name, point in self._brought().items():
            place = _place_of(point)
            package = f"{point.dist.name} {point.dist.version}" if point.dist else "an installed package"
            own.append(RegistryEntry(name, first_line(place), place, package))
        return own

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
        except UntrustedCodeError as error:
            raise UntrustedCodeError(f"{error}{hint}") from error
        except InputError as error:
            raise InputError(f"{self.kind} {error}{hint}") from error
        wanted = imported(self._of) if self._of is not None else None
        if wanted is not None and not isinstance(entry, wanted):
            raise InputError(f"{self.kind} {place}: is a {type(entry).__name__}; wanted a {wanted.__name__}")
        if wanted is None and not callable(entry):
            raise InputError(f"{self.kind} {place}: is a {type(entry).__name__}, which cannot be called")
        result: T = entry
        return result


class JoinedRegistry(Mapping[str, T]):
    """Several tables as one; a name stands for the entry of the first table that has it.

    Args:
        tables: in order.
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
    """Read the entry points of a group; reading those of all packages on the path takes longer than a small step."""
    if not consent.folders:
        return tuple(entry_points(group=group))
    packages = distributions(path=[folder for folder in path if folder not in consent.folders])
    return tuple(point for package in packages for point in package.entry_points.select(group=group))


def _place_of(point: EntryPoint) -> str:
    return f"{point.module}:{point.attr}"
