"""Grids over config keys, and their cells."""

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
    """A config key and its values.

    Raises:
        InputError: there are no values, a value is repeated, or the key is the seed.
    """

    key: str
    values: tuple[Json, ...]

    def __post_init__(self) -> None:
        if self.key == "seed":
            raise InputError("--over seed: every cell is run with all seeds; pass the number of seeds as --seeds")
        if not self.values:
            raise InputError(f"--over {self.key}: no values given; pass at least one value")
        texts = [repr(value) for value in self.values]
        if repeated := next((text for text in texts if texts.count(text) > 1), ""):
            raise InputError(f"--over {self.key}: the value {repeated} is repeated; pass each value once")


@dataclass(frozen=True)
class Cell:
    """One point of a grid, or one row of a comparison: a config without its seed, under a name.

    Attributes:
        name: unique among the cells.
        config: resolved config; each run replaces the seed by its own.
        settings: key -> value of the axes; None if the key has no effect.
    """

    name: str
    config: Config
    settings: JsonObject

    def folder(self, end: str) -> str:
        """Return the name of a folder of this cell: the name of the cell and an ending such as "seed0"."""
        return f"{file_name(self.name)}_{end}"


def axes_of(over: Mapping[str, Sequence[Json]] | Sequence[str]) -> list[Axis]:
    """Parse axes: key -> values, or texts as for `--over`; values that are one text are parsed as in `--over` ("1..7").

    Raises:
        InputError: see `parse_axis`; also for a value that is neither a mapping nor texts.
    """
    if not isinstance(over, Iterable):
        raise InputError(f"over has type {type(over).__name__}; pass a mapping of keys to values, or texts")
    if not isinstance(over, Mapping):
        return [parse_axis(str(text)) for text in ([over] if isinstance(over, str) else over)]
    return [
        Axis(str(key), tuple(values))
        if isinstance(values, Iterable) and not isinstance(values, str)
        else parse_axis(f"{key}={values}")
        for key, values in over.items()
    ]


def parse_axis(text: str) -> Axis:
    """Parse "key=1..7" or "key=a,b,c" of `--over`; the values are YAML, and a range includes both ends.

    Raises:
        InputError: there is no "=", or `Axis` rejects key or values.
    """
    key, sign, listed = (part.strip() for part in text.partition("="))
    if not sign or not key or not listed:
        raise InputError(
            f"--over {text}: does not have the form key=values; pass, for example, proxy.k=1..7 or "
            "loss=triplet,aa-triplet"
        )
    try:
        content = strict_yaml.load(f"[{listed}]")
    except InputError as error:
        problem = str(error).removeprefix("line 1: ")
        raise InputError(f"--over {text}: {problem}; separate the values by commas") from error
    values: list[Json] = []
    for value in content if isinstance(content, list) else [content]:
        values += _spanned(value, text)
    return Axis(key, tuple(values))


Point = tuple[JsonObject, Config]
"""Settings of the axes, and the config with them."""


def points(base: JsonObject, axes: Sequence[Axis], again: JsonObject | None = None) -> list[Point]:
    """Return all combinations of the values of axes.

    Args:
        base: nested config values, with data.
        axes: axes in the order of the tables; the first axis varies slowest.
        again: settings that every point has, as returned by `set_again`.

    Raises:
        InputError: a key is repeated, or the config rejects a value.
    """
    keys = [axis.key for axis in axes]
    if len(set(keys)) != len(keys):
        raise InputError(f"--over: {max(keys, key=keys.count)} given twice; pass all of its values in one --over")
    crossed = itertools.product(*(axis.values for axis in axes))
    settings = [dict(zip(keys, values, strict=True)) for values in crossed]
    return [(point, resolve(applied(base, {**(again or {}), **point}))) for point in settings]


def set_again(changed: JsonObject, axes: Sequence[Axis]) -> JsonObject:
    """Return the settings of sections that an axis replaces, which must be set again in every cell.

    When an axis sets another loss, options of the loss such as the margin return to their defaults.

    Raises:
        InputError: the settings contain the key of an axis, or the seed, which would have no effect.
    """
    if "seed" in changed:
        raise InputError("seed: every run has its own seed; pass the number of seeds as --seeds")
    keys = [axis.key for axis in axes]
    for key in keys:
        if key in changed:
            raise InputError(
                f"--over {key}: the axis overrides the value of {key} that is set for all runs; leave out that value"
            )
    replaced = tuple(f"{key}." for key in keys)
    return {key: value for key, value in changed.items() if key.startswith(replaced)}


def applied(base: JsonObject, settings: JsonObject) -> JsonObject:
    """Apply settings in order: the proxy, the loss (which may remove the proxy), and options of the loss."""
    for key in sorted(settings, key=lambda key: [key == late or key.startswith(late) for late in _LATER]):
        base = with_setting(base, key, settings[key])
    return base


def cells_of(crossed: Sequence[Point]) -> list[Cell]:
    """Return the cells of points; points of equal config (k of a loss without a proxy) share a cell."""
    groups: dict[str, list[Point]] = {}
    for settings, config in crossed:
        groups.setdefault(config.yaml(), []).append((settings, config))
    cells: dict[str, Cell] = {}
    for text, members in groups.items():
        settings, config = members[0]
        common = {
            key: value if all(other.get(key) == value for other, _ in members) else None
            for key, value in settings.items()
        }
        name = "_".join(f"{key}={shown(value)}" for key, value in common.items() if value is not None)
        name = name or config.label()
        if name in cells:
            name = f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
        cells[name] = Cell(name, config, common)
    return list(cells.values())


def without_proxy(config: Config) -> Config:
    """Return a config with the identity as proxy."""
    return resolve(config.values | {"proxy": IDENTITY})


def at_most(config: Config, epochs: int) -> Config:
    """Limit the epochs of a training, and of the pretrained model that it needs (3cmlf)."""
    prior = getattr(config.options, "ancillary_epochs", None)
    long = ["training.epochs"] * (config.training.epochs > epochs)
    long += ["method.ancillary_epochs"] * (isinstance(prior, int) and prior > epochs)
    return resolve(applied(config.values, dict.fromkeys(long, epochs))) if long else config


def plain_settings(settings: JsonObject) -> JsonObject:
    """Return settings without the proxy."""
    plain = {key: None if key.startswith("proxy") else value for key, value in settings.items()}
    loss = plain.get("loss")
    if isinstance(loss, str):
        plain["loss"] = loss.removeprefix(proxy_prefix_of(loss))
    return plain


def folder_name(base: JsonObject, axes: Sequence[Axis]) -> str:
    """Return the folder name of a grid; equal grids have equal names, so that a repeated call continues."""
    text = yaml.safe_dump([dict(base), [[axis.key, list(axis.values)] for axis in axes]], default_flow_style=True)
    keys = "-".join(axis.key for axis in axes)
    return f"{file_name(keys)}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def shown(value: Json) -> str:
    """Return a value as YAML, on one line."""
    return " ".join(yaml.safe_dump(value, default_flow_style=True, width=10_000).removesuffix("\n...\n").split())


def _spanned(value: Json, text: str) -> list[Json]:
    match = _RANGE.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return [value]
    first, last, step = int(match[1]), int(match[2]), int(match[3] or 1)
    if last < first or step < 1:
        raise InputError(
            f"--over {text}: the range {value} is empty; pass FIRST..LAST or FIRST..LAST..STEP, with FIRST up to LAST"
        )
    return list(range(first, last + 1, step))
