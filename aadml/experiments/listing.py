"""The tables of the toolkit, as names with one line each."""

import inspect
from collections.abc import Mapping
from typing import Any

import yaml

from aadml.experiments.config import configs_folder
from feature_extraction.errors import InputError


def listing(kind: str) -> dict[str, str]:
    """Map the names of a table to the first line of their documentation.

    Args:
        kind: "losses", "proxies", "selections", "methods", "extractors", "datasets", "protocols", "label-losses",
            "readouts" or "configs".

    Raises:
        InputError: no such table.
    """
    tables = {
        "losses": _losses,
        "proxies": _proxies,
        "selections": _selections,
        "methods": _methods,
        "extractors": _extractors,
        "datasets": _datasets,
        "protocols": _protocols,
        "label-losses": _label_losses,
        "readouts": _readouts,
        "configs": _configs,
    }
    if kind not in tables:
        raise InputError(f"list: nothing called '{kind}'; there are: {', '.join(tables)}")
    return tables[kind]()


def first_line(entry: Any) -> str:
    """Give the first line of an entry's documentation, or the description it carries."""
    text = getattr(entry, "description", None) or inspect.getdoc(entry) or ""
    return str(text).strip().split("\n", 1)[0]


def _lines(table: Mapping[str, Any]) -> dict[str, str]:
    return {name: first_line(entry) for name, entry in table.items()}


def _losses() -> dict[str, str]:
    from aadml.losses import LOSSES
    from aadml.losses.recipes import RECIPES

    return _lines(LOSSES) | _lines(RECIPES)


def _proxies() -> dict[str, str]:
    from aadml.proxies import PROXIES

    return _lines(PROXIES)


def _selections() -> dict[str, str]:
    from aadml.selections import SELECTIONS

    return _lines(SELECTIONS)


def _methods() -> dict[str, str]:
    from aadml.methods import METHODS

    return _lines(METHODS)


def _extractors() -> dict[str, str]:
    from feature_extraction.backbones import EXTRACTORS

    return _lines(EXTRACTORS)


def _datasets() -> dict[str, str]:
    from aadml.data import DATASETS

    return _lines(DATASETS)


def _protocols() -> dict[str, str]:
    from aadml.protocols import PROTOCOLS

    return _lines(PROTOCOLS)


def _label_losses() -> dict[str, str]:
    from aadml.label_losses import LABEL_LOSSES

    return _lines(LABEL_LOSSES)


def _readouts() -> dict[str, str]:
    from aadml.methods.readouts import READOUTS

    return _lines(READOUTS)


def _configs() -> dict[str, str]:
    """Name the shipped configs with the comment that opens each."""
    found = {}
    for path in sorted(configs_folder().glob("*.yaml")):
        text = path.read_text(encoding="utf-8")
        comment = text.splitlines()[0].removeprefix("#").strip() if text.startswith("#") else ""
        found[path.stem] = comment or ", ".join(yaml.safe_load(text))
    return found
