"""Grids over config keys, and their cells."""

import hashlib
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import yaml

from aadml.configuration import strict_yaml
from aadml.configuration.config import Config, ConfigFile, resolve
from aadml.configuration.overrides import IDENTITY, is_recipe, named, proxy_prefix_of, with_setting
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.options import schema
from aadml.feature_extraction.ground.registry import lookup
from aadml.proxies import PROXIES
from aadml.runs.run_names import file_name

_RANGE = re.compile(r"(-?\d+)\.\.(-?\d+)(?:\.\.(\d+))?")
_REPLACED_BY_LOSS = ("proxy", "selection", "directions")
"""Sections that the shorthand of a loss ("aa-hard-triplet") replaces."""


@dataclass(frozen=True)
class Axis:
    """A config key and its values.

    Raises:
        InputError: the values are missing or repeated, or the key is the seed.
    """

    key: str
    values: tuple[object, ...]

    def __post_init__(self) -> None:
        if self.key == "seed":
            raise InputError("seed: every row is run with all seeds; pass the number of seeds as --seeds")
        if not self.values:
            raise InputError(f"{self.key}: there are no values; pass at least one value")
        texts = [repr(value) for value in self.values]
        if repeated := next((text for text in texts if texts.count(text) > 1), ""):
            raise InputError(f"{self.key}: the value {repeated} is repeated; pass each value once")


@dataclass(frozen=True)
class Overrides:
    """Values that replace those of a config, by dotted key."""

    values: Mapping[str, object] = field(default_factory=dict)

    def __or__(self, other: "Overrides") -> "Overrides":
        return Overrides({**self.values, **other.values})

    def then(self, later: "Overrides") -> "Overrides":
        """Return these values followed by `later` values, which replace sections with their options.

        A later loss replaces the proxy. Options of the loss, the selection and the directions are kept.
        """
        dropped = ("proxy", "proxy.name") if "loss" in later.values else ()
        sections = tuple(f"{key}." for key in later.values if key != "loss")
        values = {k: value for k, value in self.values.items() if k not in dropped and not k.startswith(sections)}
        return Overrides(values) | later

    def within(self, base: ConfigFile, proxies: Sequence[str] = ()) -> ConfigFile:
        """Return a config file with these values.

        The loss is set first, and sections are set before their options. An option that belongs only to proxies
        other than the chosen proxy is ignored. This rule requires a loss or a proxy among these values.

        Args:
            base: config file.
            proxies: proxies whose options are ignored in addition to those of all listed proxies.

        Raises:
            InputError: a part of a key is not a mapping, or the loss is unknown.
        """
        values, proxy = base.values, self.values.keys() & {"loss", "proxy", "proxy.name"}
        first = ("loss", "loss.name")
        for key in sorted(self.values, key=lambda key: (key not in first, key.count("."), not key.endswith(".name"))):
            if not (proxy and key.startswith("proxy.") and _is_of_other_proxies(key, values.get("proxy"), proxies)):
                values = with_setting(values, key, self.values[key])
        return replace(base, values=values)

    def applied(self, base: Config | ConfigFile, proxies: Sequence[str] = ()) -> Config:
        """Resolve a config with these values; see `within` for the arguments.

        Raises:
            InputError: the config rejects a key or value.
        """
        return resolve(self.within(ConfigFile(base.values), proxies).values)

    def text(self) -> str:
        """Return the `key=value` pairs joined by underscores, without keys that have no effect."""
        return "_".join(f"{key}={_on_one_line(value)}" for key, value in self.values.items() if value is not None)


@dataclass(frozen=True)
class Point:
    """A point of a grid: values of the axes (None for a key without effect), and the config with these values."""

    settings: Overrides
    config: Config

    def without_proxy(self) -> "Point":
        """Return the point of the same training run without proxy."""
        plain = {key: None if key.startswith("proxy") else value for key, value in self.settings.values.items()}
        loss = plain.get("loss")
        if isinstance(loss, str):
            plain["loss"] = loss.removeprefix(proxy_prefix_of(loss))
        return Point(Overrides(plain), without_proxy(self.config))


@dataclass(frozen=True)
class Cell:
    """Named config of points of a grid, or of rows of a comparison.

    Points or rows with equal configs share a cell.

    Attributes:
        name: name, unique among the cells.
        config: resolved config; each run sets its own seed.
        settings: values of the axes; None for a key without effect.
    """

    name: str
    config: Config
    settings: Overrides = field(default_factory=Overrides)

    def folder(self, end: str) -> str:
        """Return the name of a folder of this cell: the name of the cell and an ending such as "seed0"."""
        return f"{file_name(self.name)}_{end}"


def axes_of(over: Mapping[str, Sequence[object]] | Sequence[str]) -> list[Axis]:
    """Parse axes from a mapping of keys to values, or from texts as for `--over`. Values may be a text such as "1..7".

    Raises:
        InputError: an axis is invalid (see `parse_axis`), or `over` is neither a mapping nor texts.
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
    """Parse a text of `--over`, such as "key=a,b,c", "key=1..7" or, with step 2, "key=1..7..2".

    The values are YAML. A range includes its start, and also its end if a step reaches the end.

    Raises:
        InputError: a text without key, "=" or values, an invalid value, an empty range, or a key or values that
            `Axis` rejects.
    """
    key, sign, listed = (part.strip() for part in text.partition("="))
    if not sign or not key or not listed:
        raise InputError(
            f"--over {text} does not have the form key=values; pass, for example, proxy.k=1..7 or "
            "loss=triplet,aa-triplet"
        )
    try:
        content = strict_yaml.load(f"[{listed}]")
    except InputError as error:
        problem = str(error).removeprefix("line 1: ").partition("; ")[0]
        raise InputError(f"--over {text}: {problem}; write YAML values, separated by commas") from error
    parts = content if isinstance(content, list) else [content]
    return Axis(key, tuple(value for part in parts for value in _range(part, text) or [part]))


def points(base: Config | ConfigFile, axes: Sequence[Axis], again: Overrides) -> list[Point]:
    """Return all combinations of the values of axes.

    Args:
        base: config with data.
        axes: axes in the order of the tables; the first axis varies slowest.
        again: settings that every point has, as returned by `set_again`.

    Raises:
        InputError: a key is repeated, or the config rejects a key or value.
    """
    keys = [axis.key for axis in axes]
    if len(set(keys)) != len(keys):
        raise InputError(f"--over: {max(keys, key=keys.count)} occurs twice; pass all of its values in one --over")
    crossed = itertools.product(*(axis.values for axis in axes))
    settings = [Overrides(dict(zip(keys, values, strict=True))) for values in crossed]
    proxies = proxies_of(base, axes)
    return [Point(values, (again | values).applied(base, proxies)) for values in settings]


def proxies_of(base: Config | ConfigFile, axes: Sequence[Axis]) -> list[str]:
    """Return the names of the proxies in a config and among the values of axes."""
    values = [value for axis in axes if axis.key in ("proxy", "proxy.name") for value in axis.values]
    values.append(base.values.get("proxy"))
    names = [value.get("name") if isinstance(value, Mapping) else value for value in values]
    return [name for name in names if isinstance(name, str) and name in PROXIES]


def set_again(changed: Overrides, axes: Sequence[Axis]) -> Overrides:
    """Return the settings to repeat in every cell, because an axis replaces their section.

    An axis over losses resets the proxy, the selection, the directions, and options of the loss such as the margin.

    Raises:
        InputError: `changed` contains the seed or the key of an axis.
    """
    if "seed" in changed.values:
        raise InputError(
            f"--set seed={_on_one_line(changed.values['seed'])}: every run has its own seed; pass the number of seeds "
            "as --seeds"
        )
    keys = [axis.key for axis in axes]
    for key in keys:
        if key in changed.values:
            raise InputError(
                f"--over {key}: {key} is also set to {_on_one_line(changed.values[key])} for all runs; leave out this "
                f"setting, or --over {key}"
            )
    replaced = tuple(f"{key}." for key in keys)
    implied = _REPLACED_BY_LOSS if "loss" in keys else ()
    again = {
        key: value
        for key, value in changed.values.items()
        if key.startswith(replaced) or key.partition(".")[0] in implied
    }
    return Overrides(again)


def cells_of(crossed: Sequence[Point]) -> list[Cell]:
    """Return the cells of points. Points of equal training (such as any k for a loss without proxy) share a cell."""
    groups: dict[str, list[Point]] = {}
    for point in crossed:
        groups.setdefault(point.config.yaml(recipe=False), []).append(point)
    cells: dict[str, Cell] = {}
    for members in groups.values():
        config, settings = _shared(members)
        name = settings.text() or config.label()
        if name in cells:
            name = f"{name}-{hashlib.sha256(config.yaml().encode()).hexdigest()[:8]}"
        cells[name] = Cell(name, config, settings)
    return list(cells.values())


def _shared(members: Sequence[Point]) -> tuple[Config, Overrides]:
    """Return the config and the settings of points of equal training; None for a setting that differs.

    Of several recipes, the first recipe is kept if none of its sections is replaced.
    """
    config, common = members[0].config, dict(members[0].settings.values)
    for key, value in common.items():
        if any(other.settings.values.get(key) != value for other in members):
            common[key] = None
    if any(other.config.recipe != config.recipe for other in members):
        config = config if is_recipe(config.values) else replace(config, recipe=None)
        name = config.recipe or config.sections.loss.name
        common |= {k: v for k, v in (("loss", config.prefix + name), ("loss.name", name)) if k in common}
    return config, Overrides(common)


def without_proxy(config: Config) -> Config:
    """Return a config with the identity as proxy."""
    return resolve(config.values | {"proxy": IDENTITY})


EPOCHS = ("training.epochs", "method.ancillary_epochs")
"""Keys that `at_most` limits."""


def at_most(config: Config, epochs: int | None) -> Config:
    """Limit the epochs of a run, and of the pretrained model that a method such as "3cmlf" needs; None: no limit."""
    if epochs is None:
        return config
    numbers = config.training.epochs, getattr(config.options, "ancillary_epochs", None)
    long = [key for key, number in zip(EPOCHS, numbers, strict=True) if isinstance(number, int) and number > epochs]
    return Overrides(dict.fromkeys(long, epochs)).applied(config) if long else config


def folder_name(base: Config, axes: Sequence[Axis]) -> str:
    """Return the folder name of a grid. Equal arguments have the same folder, so that a repeated grid continues."""
    text = yaml.safe_dump([base.values, [[axis.key, list(axis.values)] for axis in axes]], default_flow_style=True)
    keys = "-".join(axis.key for axis in axes)
    return f"{file_name(keys)}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def _is_of_other_proxies(key: str, proxy: object, others: Sequence[str]) -> bool:
    """Return whether listed proxies or `others` have the option at a key, and the proxy of a section does not."""
    if proxy is None or (isinstance(proxy, Mapping) and "name" not in proxy):
        return False
    option, entry = key.removeprefix("proxy."), lookup(PROXIES, named(proxy, "proxy")[0], "proxy")
    return option not in schema(entry) and any(option in schema(PROXIES[name]) for name in (*PROXIES, *others))


def _on_one_line(value: object) -> str:
    return " ".join(yaml.safe_dump(value, default_flow_style=True, width=10_000).removesuffix("\n...\n").split())


def _range(value: object, text: str) -> range | None:
    """Return the numbers of "FIRST..LAST" or "FIRST..LAST..STEP"; None for any other value."""
    match = _RANGE.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return None
    first, last, step = int(match[1]), int(match[2]), int(match[3] or 1)
    if last < first or step < 1:
        raise InputError(
            f"--over {text}: the range {value} is empty; pass FIRST..LAST or FIRST..LAST..STEP, with FIRST "
            "at most LAST and STEP at least 1"
        )
    return range(first, last + 1, step)
