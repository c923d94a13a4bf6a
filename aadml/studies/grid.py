"""Grids over config keys: what is varied, and the cells that come out."""

import hashlib
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import yaml

from aadml.configuration import strict_yaml
from aadml.configuration.config import Config, resolve
from aadml.configuration.overrides import IDENTITY, proxy_prefix_of, with_setting
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import Json, JsonObject
from aadml.runs.run_names import file_name

_RANGE = re.compile(r"(-?\d+)\.\.(-?\d+)(?:\.\.(\d+))?")
_LATER = ("loss", "loss.", "selection", "directions")


@dataclass(frozen=True)
class Axis:
    """A config key and the values it takes.

    Raises:
        InputError: no values, a value twice, or a key that a grid cannot vary.
    """

    key: str
    values: tuple[Json, ...]

    def __post_init__(self) -> None:
        if self.key == "seed":
            raise InputError("--over seed: seeds are given by --seeds, and every cell gets all of them")
        if not self.values:
            raise InputError(f"--over {self.key}: no value is given")
        if len({repr(value) for value in self.values}) != len(self.values):
            raise InputError(f"--over {self.key}: names a value twice")


@dataclass(frozen=True)
class Cell:
    """One point of a grid, or one row of a comparison: a config without its seed, under a name.

    Attributes:
        name: unique among the cells.
        config: resolved; its seed is replaced by that of each run.
        settings: key -> value of the axes; None where the key changes nothing.
    """

    name: str
    config: Config
    settings: JsonObject

    def folder(self, end: str) -> str:
        """Return the name of a folder of this cell: that of the cell, and an end such as "seed0"."""
        return f"{file_name(self.name)}_{end}"


def axes_of(over: Mapping[str, Sequence[Json]] | Sequence[str]) -> list[Axis]:
    """Read what is varied: key -> values, or texts as `--over` takes them; a value alone is read as there ("1..7").

    Raises:
        InputError: as of `parse_axis`.
    """
    if not isinstance(over, Mapping):
        return [parse_axis(str(text)) for text in ([over] if isinstance(over, str) else over)]
    return [
        Axis(str(key), tuple(values))
        if isinstance(values, Iterable) and not isinstance(values, str)
        else parse_axis(f"{key}={values}")
        for key, values in over.items()
    ]


def parse_axis(text: str) -> Axis:
    """Read "key=1..7" or "key=a,b,c" of `--over`; the values are YAML, a range takes both of its ends.

    Raises:
        InputError: no "=", or what `Axis` refuses.
    """
    key, sign, listed = (part.strip() for part in text.partition("="))
    if not sign or not key or not listed:
        raise InputError(f"--over {text}: write it as key=values, for example proxy.k=1..7 or loss=triplet,aa-triplet")
    try:
        given = strict_yaml.load(f"[{listed}]")
    except InputError as error:
        problem = str(error).removeprefix("line 1: ")
        raise InputError(f"--over {text}: {problem}; separate the values by commas") from error
    values: list[Json] = []
    for value in given if isinstance(given, list) else [given]:
        values += _spanned(value, text)
    return Axis(key, tuple(values))


Point = tuple[JsonObject, Config]
"""Settings of the axes, and the config they give."""


def points(base: JsonObject, axes: Sequence[Axis], again: JsonObject | None = None) -> list[Point]:
    """Cross the axes.

    Args:
        base: nested config values, with data.
        axes: in the order of the tables, the first one slowest.
        again: settings that every point has, as `set_again` gives them.

    Raises:
        InputError: a key twice, or a value that the config refuses.
    """
    keys = [axis.key for axis in axes]
    if len(set(keys)) != len(keys):
        raise InputError(f"--over: {max(keys, key=keys.count)} is given twice; list all of its values in one")
    crossed = itertools.product(*(axis.values for axis in axes))
    settings = [dict(zip(keys, values, strict=True)) for values in crossed]
    return [(point, resolve(applied(base, {**(again or {}), **point}))) for point in settings]


def set_again(given: JsonObject, axes: Sequence[Axis]) -> JsonObject:
    """Pick the settings that go with what an axis replaces, and that every cell therefore has to be given anew.

    The margin of one loss is no more than a default once the axis names another loss.

    Raises:
        InputError: a setting of an axis's own key, or of the seed, which no run would have.
    """
    if "seed" in given:
        raise InputError("seed: every run has its own; say how many with --seeds")
    keys = [axis.key for axis in axes]
    for key in keys:
        if key in given:
            raise InputError(f"--over {key}: {key} is given by itself too, and no run would have it; leave one out")
    replaced = tuple(f"{key}." for key in keys)
    return {key: value for key, value in given.items() if key.startswith(replaced)}


def applied(base: JsonObject, settings: JsonObject) -> JsonObject:
    """Set keys; the loss after the proxy that it may take away, a loss's own options after the loss."""
    for key in sorted(settings, key=lambda key: [key == late or key.startswith(late) for late in _LATER]):
        base = with_setting(base, key, settings[key])
    return base


def cells_of(crossed: Sequence[Point]) -> list[Cell]:
    """Make cells of points; those whose configs came out equal (k of a loss without a proxy) are one cell."""
    groups: dict[str, list[Point]] = {}
    for settings, config in crossed:
        groups.setdefault(config.yaml(), []).append((settings, config))
    found: list[Point] = []
    for members in groups.values():
        shared = {
            key: value if all(other.get(key) == value for other, _ in members) else None
            for key, value in members[0][0].items()
        }
        found.append((shared, members[0][1]))
    return [Cell(name, config, settings) for name, (settings, config) in zip(_names(found), found, strict=True)]


def without_proxy(config: Config) -> Config:
    """Return a config with anchors seen as themselves."""
    return resolve(config.values | {"proxy": IDENTITY})


def plain_settings(settings: JsonObject) -> JsonObject:
    """Return settings once the proxy is taken away."""
    kept = {key: None if key.startswith("proxy") else value for key, value in settings.items()}
    loss = kept.get("loss")
    if isinstance(loss, str):
        kept["loss"] = loss.removeprefix(proxy_prefix_of(loss))
    return kept


def folder_name(base: JsonObject, axes: Sequence[Axis]) -> str:
    """Name the folder of a grid: the same grid has the same name, so that it goes on where it was stopped."""
    text = yaml.safe_dump([dict(base), [[axis.key, list(axis.values)] for axis in axes]], default_flow_style=True)
    keys = "-".join(axis.key for axis in axes)
    return f"{file_name(keys)}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def shown(value: Json) -> str:
    """Write a value as it stands in YAML, on one line."""
    return " ".join(yaml.safe_dump(value, default_flow_style=True, width=10_000).removesuffix("\n...\n").split())


def _spanned(value: Json, text: str) -> list[Json]:
    found = _RANGE.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return [value]
    first, last, step = int(found[1]), int(found[2]), int(found[3] or 1)
    if last < first or step < 1:
        raise InputError(f"--over {text}: the range {value} is empty; write FIRST..LAST or FIRST..LAST..STEP")
    return list(range(first, last + 1, step))


def _names(found: Sequence[Point]) -> list[str]:
    names: list[str] = []
    for settings, config in found:
        parts = [f"{key}={shown(value)}" for key, value in settings.items() if value is not None]
        name = "_".join(parts) or config.label()
        if name in names:
            name = f"{name}-{hashlib.sha256(config.yaml().encode()).hexdigest()[:8]}"
        names.append(name)
    return names
