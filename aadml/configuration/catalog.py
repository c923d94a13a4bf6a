"""Entries of the registries, listed without importing the entries, and the options of an entry."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.import_paths import first_line, imported
from aadml.feature_extraction.ground.json_values import typed
from aadml.feature_extraction.ground.options import Option, schema
from aadml.feature_extraction.ground.registry import OWN, JoinedRegistry, Registry, RegistryEntry, lookup
from aadml.losses import LOSSES
from aadml.objective.recipes import Recipe

TABLES: dict[str, tuple[str, ...]] = {
    "losses": ("aadml.losses:LOSSES", "aadml.objective.recipes:RECIPES"),
    "proxies": ("aadml.proxies:PROXIES",),
    "selections": ("aadml.selections:SELECTIONS",),
    "methods": ("aadml.methods:METHODS",),
    "extractors": ("aadml.feature_extraction.backbones:EXTRACTORS",),
    "datasets": ("aadml.data.datasets:DATASETS",),
    "protocols": ("aadml.protocols:PROTOCOLS",),
    "metrics": ("aadml.retrieval:METRICS",),
    "label-losses": ("aadml.losses:LABEL_LOSSES",),
    "readouts": ("aadml.methods:READOUTS",),
    "feature-recipes": ("aadml.feature_extraction.jobs.recipes:RECIPES",),
    "configs": (),
    "sections": (),
}
"""Kind -> import paths of its registries, which are imported on demand."""
WITH_OPTIONS = ("losses", "proxies", "selections", "methods", "extractors", "label-losses", "readouts", "sections")
"""Kinds whose entries have options."""
SECTIONS: dict[str, tuple[str, ...]] = {
    "general": ("aadml.configuration.config:Common",),
    "inputs": ("aadml.methods.inputs:Inputs",),
    "training": ("aadml.methods.training.settings:Training",),
    "towers": ("aadml.methods.towers.options:PretrainedOptions",),
    "network": ("aadml.methods.networks:NetworkOptions",),
    "neighbors": ("aadml.objective.neighbor_positives:NeighborOptions",),
    "loss": ("aadml.objective.objective:ObjectiveOptions", "aadml.objective.composition:Weighted"),
    "label_loss": ("aadml.objective.composition:Weighted",),
}
"""Section of a config -> import paths of the declarations of options that do not depend on the entry of the section."""


def listing(kind: str) -> list[RegistryEntry]:
    """Return a description of each entry of a kind. Of several entries with one name, only the last is returned.

    The entries of the kinds "configs" and "sections" are the presets and the sections of a config. The entries of
    any other kind are the entries of its registries.

    Args:
        kind: a key of TABLES.

    Raises:
        InputError: the kind is unknown.
    """
    entries: list[RegistryEntry] = []
    for place in lookup(TABLES, kind, "kind of entry"):
        for table in _tables(place):
            if isinstance(table, Registry):
                entries += table.listed()
            else:
                entries += [RegistryEntry(name, entry.description, place, OWN) for name, entry in table.items()]
    others = {"configs": _configs, "sections": _sections}
    return list({entry.name: entry for entry in [*entries, *(others[kind]() if kind in others else ())]}.values())


def _tables(place: str) -> list[Any]:
    """Return the registries by modality that a table consists of, or else the table itself.

    A table that is not a registry, such as RECIPES, maps names to entries with a `description`.
    """
    table = imported(place)
    if not isinstance(table, Registry) and all(isinstance(entry, Registry) for entry in table.values()):
        return list(table.values())
    return [table]


def _configs() -> Iterator[RegistryEntry]:
    """Yield the presets, described by the comment in their first line."""
    from aadml.configuration.presets import configs_folder

    for path in sorted(configs_folder().glob("*.yaml")):
        first = path.read_text(encoding="utf-8").partition("\n")[0]
        yield RegistryEntry(path.stem, first.removeprefix("#").strip(), f"configs/{path.name}", OWN)


def _sections() -> Iterator[RegistryEntry]:
    for name, places in SECTIONS.items():
        yield RegistryEntry(name, first_line(places[0]), places[0], OWN)


def options(kind: str, name: str) -> list[Option]:
    """Import an entry or a section, and return its options.

    The options of a recipe are those of its loss and of the section `loss`, with the values of the recipe as defaults.

    Args:
        kind: a key of TABLES.
        name: name of the entry or section, or "module:name" of an entry.

    Raises:
        InputError: the kind or entry is unknown, or entries of this kind have no options.
    """
    if kind not in WITH_OPTIONS:
        lookup(TABLES, kind, "kind of entry")
        raise InputError(f"list: {kind} have no options; choose from {', '.join(WITH_OPTIONS)}")
    if kind == "sections":
        declared = [imported(place) for place in lookup(SECTIONS, name, "section of a config")]
        return [option for entry in declared for option in schema(entry).values()]
    tables = [table for place in reversed(TABLES[kind]) for table in _tables(place)]
    entry = lookup(JoinedRegistry(*tables), name, f"entry in {kind}")
    if isinstance(entry, Recipe):
        known = [*schema(LOSSES[typed(entry.loss, "name", str)]).values(), *options("sections", "loss")]
        return [replace(option, default=entry.loss.get(option.name, option.default)) for option in known]
    return list(schema(entry).values())
