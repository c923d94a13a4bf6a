"""The tables of the toolkit, as names with one line each."""

import importlib
import inspect
from collections.abc import Mapping
from typing import Any

from aadml.configuration.files import configs_folder
from feature_extraction.ground.options import lookup

TABLES: dict[str, tuple[tuple[str, str], ...]] = {
    "losses": (("aadml.losses", "LOSSES"), ("aadml.objective.recipes", "RECIPES")),
    "proxies": (("aadml.proxies", "PROXIES"),),
    "selections": (("aadml.selections", "SELECTIONS"),),
    "methods": (("aadml.methods", "METHODS"),),
    "extractors": (("feature_extraction.backbones", "EXTRACTORS"),),
    "datasets": (("aadml.data", "DATASETS"),),
    "protocols": (("aadml.protocols", "PROTOCOLS"),),
    "label-losses": (("aadml.losses.label_losses", "LABEL_LOSSES"),),
    "readouts": (("aadml.methods.readouts", "READOUTS"),),
    "configs": (),
}
"""Kind -> the modules and names of its tables, imported when asked for."""


def listing(kind: str) -> dict[str, str]:
    """Map the names of a table to the first line of their documentation.

    Args:
        kind: a key of TABLES.

    Raises:
        InputError: no such table.
    """
    if kind == "configs":
        return _configs()
    places = lookup(TABLES, kind, "list")
    tables = [getattr(importlib.import_module(module), name) for module, name in places]
    return {name: first_line(entry) for table in tables for name, entry in _entries(table).items()}


def first_line(entry: Any) -> str:
    """Give the first line of an entry's documentation, or the description it carries."""
    text = getattr(entry, "description", None) or inspect.getdoc(entry) or ""
    return str(text).strip().split("\n", 1)[0]


def _entries(table: Mapping[str, Any]) -> Mapping[str, Any]:
    """Resolve entries that are told as (what for, "module:function")."""
    return {name: _resolved(entry) for name, entry in table.items()}


def _resolved(entry: Any) -> Any:
    if not isinstance(entry, tuple):
        return entry
    module, _, function = str(entry[-1]).partition(":")
    return getattr(importlib.import_module(module), function)


def _configs() -> dict[str, str]:
    """Name the shipped configs with the comment that opens each."""
    found = {}
    for path in sorted(configs_folder().glob("*.yaml")):
        first = path.read_text(encoding="utf-8").partition("\n")[0]
        found[path.stem] = first.removeprefix("#").strip()
    return found
