"""Rows of comparisons: methods and losses of the papers' tables, each anchor-aware row with its controls."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from aadml.configuration.config import DEFAULT_METHOD, Config, ConfigFile, resolve
from aadml.configuration.files import open_config
from aadml.configuration.overrides import expand_loss
from aadml.configuration.presets import configs_folder, preset_path
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.options import as_yaml
from aadml.feature_extraction.ground.registry import JoinedRegistry, lookup
from aadml.feature_extraction.ground.strings import listed
from aadml.losses import LOSSES
from aadml.methods import METHODS
from aadml.objective.recipes import RECIPES
from aadml.proxies.anchor_aware import AnchorAware
from aadml.reports.published import PAPER
from aadml.runs.data import takes_captions
from aadml.studies.control_rows import ALONE, DEFINING, HALF, NONE, controls, rivals, weighted
from aadml.studies.grid import Cell, Overrides, at_most, without_proxy

if TYPE_CHECKING:
    from aadml.methods.method import Method

ZERO_SHOT = "zero-shot"
T = TypeVar("T")
Space = Mapping[str, Sequence[object]]
Refused = dict[str, dict[str, str]]
"""Key of a setting -> name of each row that does not use the setting -> reason."""

SINGULAR = {"methods": "method", "losses": "loss"}
"""Table -> name of its first column."""
NAMED = ("method", "method.name", "data", "seed")
"""Keys whose values differ between rows or runs."""
NAMED_BY_LOSS = ("loss", "loss.name", "recipe", "proxy", "proxy.name")
"""Keys that name a row of losses."""


@dataclass(frozen=True)
class ComparisonRow:
    """Row of a comparison: a method, a loss, or a control or rival of one of these.

    Attributes:
        table: "methods" or "losses".
        item: name of the method or loss.
        control: name of the control or rival; empty for the row of the item itself.
        cell: cell with the config of the row. Rows with the same config share a cell.
        space: config key -> values for the trials of the row.
    """

    table: str
    item: str
    control: str
    cell: Cell
    space: Space

    @property
    def name(self) -> str:
        """Item name; for a control or rival, the names of item and control, separated by a comma."""
        return f"{self.item}, {self.control}" if self.control else self.item


@dataclass(frozen=True)
class RowSettings:
    """Settings that all rows share.

    Attributes:
        data: path of the features.
        changes: overrides, each for the rows that can use the override.
        max_epochs: upper limit on the training epochs.
        config: base config, by default that of the default method. Each compared loss replaces the metric loss of this
            config. The row of the method of this config starts from this config, and not from a preset.
        with_controls: whether anchor-aware rows have controls.
        with_rivals: whether anchor-aware rows have rivals.
    """

    data: str
    changes: Overrides = field(default_factory=Overrides)
    max_epochs: int | None = None
    config: str | None = None
    with_controls: bool = True
    with_rivals: bool = False

    @cached_property
    def base(self) -> ConfigFile:
        """Config file whose metric loss is replaced by each compared loss."""
        return open_config(self.config or preset_path(DEFAULT_METHOD))

    def space_of(self, file: ConfigFile, own_keys: Collection[str] = ()) -> Space:
        """Return the search space of a config file without the keys that these settings or the row itself set."""
        changes = self.changes.values
        options = {f"{k}.{option}" for k, value in changes.items() if isinstance(value, Mapping) for option in value}
        fixed = changes.keys() | options | ({"training.epochs"} if self.max_epochs else set()) | set(own_keys)
        return {key: choices for key, choices in file.tuning_space().items() if key not in fixed}


def method_names() -> list[str]:
    """Return the names of the methods that train on any features.

    Zero-shot is excluded, because this method needs features of one model.
    """
    return [name for name in METHODS if name != ZERO_SHOT and not sound_only([name])]


def loss_names() -> list[str]:
    """Return the names of all losses, with the losses of the papers' tables first."""
    return list(dict.fromkeys([*published_losses(), *LOSSES, *RECIPES]))


def published_methods() -> list[str]:
    """Return the methods of table 1 of the AADML paper that are in METHODS."""
    return [name for name in PAPER.published["methods"] if name in METHODS]


def published_losses() -> list[str]:
    """Return the losses of tables 2 and 3 of the AADML paper, without the prefix of the proxy."""
    return list(dict.fromkeys(name.removeprefix(AnchorAware.prefix) for name in PAPER.published["losses"]))


def chosen(
    names: Sequence[str] | str | None, everything: Sequence[str], known: Mapping[str, T], kind: str
) -> list[str]:
    """Return the distinct names of a list, or of a text with names separated by commas.

    Args:
        names: names to parse; None is an empty list.
        everything: names that replace "all".
        known: mapping whose keys are the valid names.
        kind: noun for the message.

    Raises:
        InputError: a name is unknown.
    """
    selected: list[str] = []
    for name in listed(names):
        if name != "all":
            lookup(known, name, kind)
        selected += everything if name == "all" else [name]
    return list(dict.fromkeys(selected))


def named_rows(
    methods: Sequence[str],
    losses: Sequence[str],
    settings: RowSettings,
    prepare: Callable[[str, str, Config], Config] = lambda table, item, config: config,
) -> tuple[list[ComparisonRow], list[str]]:
    """Return the rows of the tables of methods and losses, and notes for the user.

    Args:
        methods: names of methods or presets.
        losses: names of losses without the proxy. Each loss becomes a row with the proxy and a row without proxy.
        settings: settings shared by all rows.
        prepare: (table, item, config) -> config of the row.

    Raises:
        InputError: a setting applies to no row, or defines the difference between rows. Other causes: a name is
            unknown, or the config of a row is invalid.
    """
    for key, value in settings.changes.values.items():
        if key in NAMED or (losses and key in NAMED_BY_LOSS):
            raise InputError(
                f"--set {key}={as_yaml(value)}: the comparison itself sets {key.partition('.')[0]}; leave out this "
                "setting"
            )
    refused: Refused = {}
    rows: list[ComparisonRow] = []
    for name in methods:
        rows += _method_rows(name, settings, refused)
    for name in losses:
        rows += _loss_rows(name, settings, refused)
    if losses and settings.with_controls:
        none = weighted(without_proxy(fitted_config(settings.base, NONE, settings, refused)), 0.0)
        rows += _rows("losses", NONE, {"": none}, settings.space_of(settings.base))
    for key, reasons in refused.items():
        if all(row.item in reasons for row in rows):
            item, reason = next(reversed(reasons.items()))
            problem, _, remedy = reason.partition("; ")
            setting = f"--set {key}={as_yaml(settings.changes.values[key])}"
            raise InputError(
                f"{setting}: no row can use this setting ({item}: {problem}); {remedy or 'leave out this setting'}"
            )
    notes = [
        f"{key} was not set for rows that cannot use this setting: {', '.join(reasons)}"
        for key, reasons in refused.items()
    ]
    cells: dict[str, Cell] = {}
    for number, row in enumerate(rows):
        cell = replace(row.cell, config=prepare(row.table, row.item, row.cell.config))
        rows[number] = replace(row, cell=cells.setdefault(cell.config.yaml(recipe=False), cell))
    return rows, notes


def _rows(table: str, item: str, configs: Mapping[str, Config], space: Space) -> list[ComparisonRow]:
    """Return the rows of an item, one row per config.

    `configs` has the config of each control by name. The config of the item itself has the name "". Trials of a row do
    not change the keys that define the row.
    """
    rows = []
    for control, config in configs.items():
        label = f"{item} {control}".strip().replace(", ", " ").replace(" ", "-")
        named = NAMED_BY_LOSS if control or table == "losses" else ()
        fixed = (*named, *DEFINING.get(control or item, ()))
        tried = {key: values for key, values in space.items() if key not in fixed}
        rows.append(ComparisonRow(table, item, control, Cell(label, config), tried))
    return rows


def _method_rows(name: str, settings: RowSettings, refused: Refused) -> list[ComparisonRow]:
    base = settings.base if name == resolve(settings.base.values).method else file_of(name)
    config = fitted_config(base, name, settings, refused)
    beside = _beside(config, settings)
    space = settings.space_of(base, DEFINING[HALF] if HALF in beside else ())
    return _rows("methods", name, {"": config, **beside}, space)


def _loss_rows(name: str, settings: RowSettings, refused: Refused) -> list[ComparisonRow]:
    own_keys = _brought_by(name)
    plain, anchored = (
        fitted_config(Overrides({"loss": loss}).within(settings.base), loss, settings, refused, own_keys)
        for loss in (name, AnchorAware.prefix + name)
    )
    # the control NONE is shared by all losses, and the row without proxy is the control ALONE
    beside = {
        control: config for control, config in _beside(anchored, settings).items() if control not in (ALONE, NONE)
    }
    space = settings.space_of(settings.base, [*own_keys, *(DEFINING[HALF] if HALF in beside else ())])
    return [
        *_rows("losses", name, {"": plain}, space),
        *_rows("losses", AnchorAware.prefix + name, {"": anchored, **beside}, space),
    ]


def _brought_by(loss: str) -> Collection[str]:
    """Return the config keys, such as "selection", that a recipe sets besides the loss.

    The result is empty if `loss` is not a recipe.
    """
    sections = expand_loss({"loss": loss}).keys() - {"loss", "recipe", "proxy"} if loss in RECIPES else ()
    return [key for section in sections for key in (section, f"{section}.name")]


def _beside(config: Config, settings: RowSettings) -> dict[str, Config]:
    """Return the controls and rivals of a config, as far as the settings include them."""
    return {
        **(controls(config) if settings.with_controls else {}),
        **(rivals(config) if settings.with_rivals else {}),
    }


def file_of(name: str) -> ConfigFile:
    """Return the config file of a method or preset; for a method from outside aadml, a file with only the key `method`.

    Raises:
        InputError: no method and no preset has this name, or the file cannot be read.
    """
    if (path := preset_path(name)).is_file():
        return open_config(path)
    lookup(known_methods(), name, "method or config")
    return ConfigFile({"method": name})  # the code of a method from outside aadml defines all its defaults


def known_methods() -> Mapping[str, "Callable[..., Method] | Path"]:
    """Return, by name, the methods and presets that can be compared as methods."""
    shipped = {path.stem: path for path in sorted(configs_folder().glob("*.yaml"))}
    return JoinedRegistry(METHODS, shipped | {stem.replace("_", "-"): path for stem, path in shipped.items()})


def fitted_config(
    base: ConfigFile, row: str, settings: RowSettings, refused: Refused, own_keys: Collection[str] = ()
) -> Config:
    """Return the config of a row with the shared settings.

    Args:
        base: config file of the row.
        row: name of the row.
        settings: settings shared by all rows.
        refused: settings that are not used, with rows and reasons. Settings that this row cannot use are added.
        own_keys: keys that the row sets itself, so that shared settings of these keys are not used.

    Raises:
        InputError: the config file is invalid.
    """
    base = Overrides({"data": settings.data}).within(base)
    config = resolve(base.values)
    for key, value in settings.changes.values.items():
        reason = "the row sets its own value"
        if key not in own_keys:
            try:
                changed = Overrides({key: value}).within(base)
                base, config = changed, resolve(changed.values)
                continue
            except InputError as error:
                reason = str(error)
        refused.setdefault(key, {})[row] = reason
    return at_most(config, settings.max_epochs)


def cells_of_rows(rows: Iterable[ComparisonRow]) -> list[Cell]:
    """Return the cells of rows, without duplicates.

    Raises:
        InputError: two different cells have the same name.
    """
    cells: dict[str, Cell] = {}
    for row in rows:
        if cells.setdefault(row.cell.name, row.cell).config != row.cell.config:
            raise InputError(f"compare: two different rows have the name '{row.cell.name}'; leave out one row")
    return list(cells.values())


def sound_only(names: Sequence[str]) -> list[str]:
    """Return the names of methods and presets that train on captioned sound instead of features."""
    return [name for name in names if takes_captions(resolve(file_of(name).values).options)]
