"""Comparisons: the rows of the papers' tables on any feature file, each anchor-aware row beside its controls."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from aadml.configuration.config import DEFAULT_METHOD, Config, resolve, tuning_space
from aadml.configuration.files import read_yaml
from aadml.configuration.overrides import expand_loss, with_setting
from aadml.configuration.presets import configs_folder
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import Json, JsonObject
from aadml.feature_extraction.ground.registry import Joined, lookup
from aadml.feature_extraction.ground.strings import listed
from aadml.losses import LOSSES
from aadml.methods import METHODS
from aadml.objective.recipes import RECIPES
from aadml.proxies.anchor_aware import AnchorAware
from aadml.runs.data import takes_captions
from aadml.studies.control_rows import ALONE, NONE, controls, rivals, weighted
from aadml.studies.epoch_limit import at_most
from aadml.studies.grid import Cell, without_proxy
from aadml.studies.published_figures import published

if TYPE_CHECKING:
    from aadml.methods.method import Method

ZERO_SHOT = "zero-shot"
T = TypeVar("T")
Space = Mapping[str, Sequence[Json]]
Setting = tuple[str, Json]
Draft = tuple[str, str, str, Config, Space]
"""Table, item, control, config and search space of a row that has no cell yet."""


SHARED = (ALONE, NONE)
"""Controls that all losses share, or that are rows of their own."""
NAMED = ("method", "method.name", "data", "seed")
"""Keys that are every row's, or every run's, own."""
NAMED_BY_LOSS = ("loss", "loss.name", "recipe", "proxy", "proxy.name")
"""Keys that a row of losses is named by."""


@dataclass(frozen=True)
class ComparisonRow:
    """A row of a table.

    Attributes:
        table: "methods" or "losses".
        item: the method or loss, as it is known here.
        control: which control of the item this is; empty for the item itself.
        cell: what is run.
        space: what a search with equal budgets may try.
    """

    table: str
    item: str
    control: str
    cell: Cell
    space: Space

    @property
    def name(self) -> str:
        """Name the row."""
        return f"{self.item}, {self.control}" if self.control else self.item


@dataclass(frozen=True)
class RowSettings:
    """What all rows share.

    Attributes:
        data: path of the features.
        changes: config keys and values, set wherever a row has them.
        max_epochs: rows that would train longer train so long.
        config: the config that losses are put into, and that stands for its method; None is the shipped default.
        with_controls: whether anchor-aware rows get their controls.
        with_rivals: whether they get their rivals too.
    """

    data: str
    changes: tuple[Setting, ...] = ()
    max_epochs: int | None = None
    config: str | None = None
    with_controls: bool = True
    with_rivals: bool = field(default=False, repr=False)


def method_names() -> list[str]:
    """Name the methods that learn from any features: zero-shot, which wants those of one model, is named by itself."""
    return [name for name in METHODS if name != ZERO_SHOT and not _takes_sound(resolve(values_of(name)))]


def loss_names() -> list[str]:
    """Name all losses, those of the papers' tables first."""
    return list(dict.fromkeys([*published_losses(), *LOSSES, *RECIPES]))


def published_methods() -> list[str]:
    """Name the methods of the paper's table 1 that are here."""
    return [name for name in published("methods") if name in METHODS]


def published_losses() -> list[str]:
    """Name the losses of the paper's tables 2 and 3, without the proxy."""
    return list(dict.fromkeys(name.removeprefix(AnchorAware.prefix) for name in published("losses")))


def chosen(
    given: Sequence[str] | str | None, everything: Sequence[str], known: Mapping[str, T], kind: str
) -> list[str]:
    """Read names, one by one or separated by commas; "all" stands for everything.

    Args:
        given: the names; None is none.
        everything: what "all" stands for.
        known: what may be named.
        kind: for the message.

    Raises:
        InputError: an unknown name.
    """
    names: list[str] = []
    for name in listed(given):
        if name != "all":
            lookup(known, name, kind)
        names += everything if name == "all" else [name]
    return list(dict.fromkeys(names))


def named_rows(
    methods: Sequence[str], losses: Sequence[str], settings: RowSettings
) -> tuple[list[ComparisonRow], list[str]]:
    """Lay out the rows of both tables.

    Args:
        methods: names of methods, or of shipped configs.
        losses: names of losses without the proxy; each is taken with and without.
        settings: what all share.

    Returns:
        The rows, those of equal config sharing a cell; and what people should know of them.

    Raises:
        InputError: a change that fits no row at all, or of what rows are named by.
    """
    _refuse_names(settings, NAMED + NAMED_BY_LOSS if losses else NAMED)
    refused: dict[str, list[str]] = {}
    found: list[Draft] = []
    for name in methods:
        found += _method_rows(name, settings, refused)
    for name in losses:
        found += _loss_rows(name, settings, refused)
    if losses:
        base = fitted_config(_base(settings), "losses", settings, refused)
        if settings.with_controls:
            found.append(("losses", NONE, "", weighted(without_proxy(base), 0.0), tuning_space(_base(settings))))
    items = [*methods, *losses]
    for key, rows in refused.items():
        if len(set(rows)) >= len(items) + bool(losses):
            raise InputError(f"--set {key}: none of the rows takes it")
    notes = [
        f"{key} was not set for rows without such a key, or with their own: {', '.join(dict.fromkeys(rows))}"
        for key, rows in refused.items()
    ]
    return _with_cells(found), notes


def _refuse_names(settings: RowSettings, keys: Collection[str]) -> None:
    """Refuse a change of what a row is named by: it would stand there as what it is not."""
    for key, _ in settings.changes:
        if key in keys:
            raise InputError(f"--set {key}: every row has its own {key.partition('.')[0]}; it cannot be set for all")


def _method_rows(name: str, settings: RowSettings, refused: dict[str, list[str]]) -> list[Draft]:
    values = _base(settings) if name == DEFAULT_METHOD else values_of(name)
    config = fitted_config(values, name, settings, refused)
    space = tuning_space(values)
    rows: list[Draft] = [("methods", name, "", config, space)]
    return rows + [("methods", name, control, changed, space) for control, changed in _beside(config, settings).items()]


def _loss_rows(name: str, settings: RowSettings, refused: dict[str, list[str]]) -> list[Draft]:
    base = _base(settings)
    space = tuning_space(base)
    kept = _brought_by(name)
    plain, anchored = (
        fitted_config(with_setting(base, "loss", prefix + name), name, settings, refused, kept)
        for prefix in ("", AnchorAware.prefix)
    )
    rows: list[Draft] = [("losses", name, "", plain, space), ("losses", AnchorAware.prefix + name, "", anchored, space)]
    beside = {control: changed for control, changed in _beside(anchored, settings).items() if control not in SHARED}
    return rows + [
        ("losses", AnchorAware.prefix + name, control, changed, space) for control, changed in beside.items()
    ]


def _brought_by(loss: str) -> Collection[str]:
    """List the keys that a recipe has its name from ("hard-triplet" its selection)."""
    sections = expand_loss({"loss": loss}).keys() - {"loss", "recipe", "proxy"} if loss in RECIPES else ()
    return [key for section in sections for key in (section, f"{section}.name")]


def _beside(config: Config, settings: RowSettings) -> dict[str, Config]:
    """Return the controls and rivals of a config that were asked for."""
    found = controls(config) if settings.with_controls else {}
    return found | (rivals(config) if settings.with_rivals else {})


def _base(settings: RowSettings) -> JsonObject:
    return read_yaml(settings.config or DEFAULT_METHOD)


def values_of(name: str) -> JsonObject:
    """Read the config of a method, or a shipped config.

    Raises:
        InputError: neither has that name.
    """
    stem = name.replace("-", "_")
    if name not in METHODS and not (configs_folder() / f"{stem}.yaml").is_file():
        lookup(known_methods(), name, "method or config")
    if name in METHODS and not (configs_folder() / f"{stem}.yaml").is_file():
        return {"method": name}  # one from outside has all its defaults in its code
    return read_yaml(stem)


def known_methods() -> Mapping[str, "Callable[..., Method] | Path"]:
    """Return what a row of methods may be: methods, and shipped configs."""
    shipped = {path.stem: path for path in sorted(configs_folder().glob("*.yaml"))}
    return Joined(METHODS, shipped | {stem.replace("_", "-"): path for stem, path in shipped.items()})


def fitted_config(
    values: JsonObject, row: str, settings: RowSettings, refused: dict[str, list[str]], kept: Collection[str] = ()
) -> Config:
    """Resolve the config of a row with the shared changes.

    Args:
        values: of the config.
        row: its name.
        settings: what all rows share.
        refused: key of a change that does not fit -> rows, to which this one is added.
        kept: keys that the row keeps as they are.
    """
    values = with_setting(values, "data", settings.data)
    config = resolve(values)
    for key, value in settings.changes:
        changed = None if key in kept else _changed(values, key, value)
        if changed is None:
            refused.setdefault(key, []).append(row)
        else:
            values, config = changed
    return config if settings.max_epochs is None else at_most(config, settings.max_epochs)


def _changed(values: JsonObject, key: str, value: Json) -> tuple[JsonObject, Config] | None:
    """Set a key and resolve; None where the config refuses it."""
    try:
        changed = with_setting(values, key, value)
        return changed, resolve(changed)
    except InputError:
        return None


def _takes_sound(config: Config) -> bool:
    return takes_captions(config.options)


def _with_cells(found: Sequence[Draft]) -> list[ComparisonRow]:
    """Give rows their cells; rows of equal config share one, named after the first of them."""
    cells: dict[str, Cell] = {}
    rows = []
    for table, item, control, config, space in found:
        label = " ".join(part for part in (item, control) if part)
        cell = cells.setdefault(config.yaml(), Cell(label.replace(", ", " ").replace(" ", "-"), config, {}))
        rows.append(ComparisonRow(table, item, control, cell, space))
    return rows


def cells_of_rows(rows: Sequence[ComparisonRow]) -> list[Cell]:
    """List the cells of rows, each once.

    Raises:
        InputError: two cells of one name.
    """
    cells = {row.cell.name: row.cell for row in rows}
    for row in rows:
        if cells[row.cell.name].config.yaml() != row.cell.config.yaml():
            raise InputError(f"compare: two rows are called '{row.cell.name}'; leave one out")
    return list(cells.values())


def sound_only(names: Sequence[str]) -> list[str]:
    """Name those of `names` that learn from captioned sound instead of features."""
    return [name for name in names if _takes_sound(resolve(values_of(name)))]
