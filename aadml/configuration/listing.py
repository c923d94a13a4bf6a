"""The tables of the toolkit, as lines that say what each entry is and where it comes from; no entry is imported."""

from collections.abc import Iterator, Mapping
from typing import Protocol

from feature_extraction.ground.places import imported
from feature_extraction.ground.tables import OWN, Listed, Table, lookup

TABLES: dict[str, tuple[str, ...]] = {
    "losses": ("aadml.losses:LOSSES", "aadml.objective.recipes:RECIPES"),
    "proxies": ("aadml.proxies:PROXIES",),
    "selections": ("aadml.selections:SELECTIONS",),
    "methods": ("aadml.methods:METHODS",),
    "extractors": ("feature_extraction.backbones:EXTRACTORS",),
    "datasets": ("aadml.data:DATASETS",),
    "protocols": ("aadml.protocols:PROTOCOLS",),
    "metrics": ("aadml.retrieval:METRICS",),
    "label-losses": ("aadml.losses:LABEL_LOSSES",),
    "readouts": ("aadml.methods:READOUTS",),
    "configs": (),
}
"""Kind -> the places of its tables, imported when asked for."""


class Described(Protocol):
    """An entry that says itself what it is."""

    @property
    def description(self) -> str:
        """Say it in one line."""


def listing(kind: str) -> list[Listed]:
    """Describe the entries of the tables of a kind; a name that two tables have stands once, as the later one.

    Args:
        kind: a key of TABLES.

    Raises:
        InputError: no such kind.
    """
    places = lookup(TABLES, kind, "kind of entry")
    entries = [entry for place in places for entry in _entries(imported(place), place)]
    return list({entry.name: entry for entry in [*entries, *(_configs() if kind == "configs" else ())]}.values())


def _entries(table: Mapping[str, Table[object] | Described], place: str) -> Iterator[Listed]:
    """Describe a table, tables by modality, or entries that carry a description."""
    if isinstance(table, Table):
        yield from table.listed()
        return
    for name, entry in table.items():
        if isinstance(entry, Table):
            yield from entry.listed()
        else:
            yield Listed(name, entry.description, place, OWN)


def _configs() -> Iterator[Listed]:
    """Name the shipped configs with the comment that opens each."""
    from aadml.configuration.files import configs_folder

    for path in sorted(configs_folder().glob("*.yaml")):
        first = path.read_text(encoding="utf-8").partition("\n")[0]
        yield Listed(path.stem, first.removeprefix("#").strip(), f"configs/{path.name}", OWN)
