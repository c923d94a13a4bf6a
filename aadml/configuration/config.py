"""Configs: checked against the arguments of what they configure, complete once resolved."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from annotated_types import Interval, Len, MinLen

from aadml.comparison.options import Count, Seed
from aadml.configuration import plain_yaml
from aadml.configuration.changes import expand_loss, section_of
from aadml.losses import LABEL_LOSSES, LOSSES
from aadml.methods import METHODS, READOUTS
from aadml.methods.inputs import fit_scaling
from aadml.methods.networks import NetworkOptions
from aadml.methods.settings import Training
from aadml.objective.composition import Weighted
from aadml.objective.objective import ObjectiveOptions, parse_directions
from aadml.objective.recipes import RECIPES
from aadml.proxies import PROXIES, prefix_of
from aadml.selections import SELECTIONS
from feature_extraction.ground.errors import InputError
from feature_extraction.ground.markers import Choice
from feature_extraction.ground.options import REQUIRED, Option, as_yaml, schema, sections
from feature_extraction.ground.places import search_beside
from feature_extraction.ground.tables import lookup, suggestion
from feature_extraction.ground.validation import checked, checked_options

DEFAULT_METHOD = "aadml"
TUNING = "tuning"
"""A config may say what a search with equal budgets tries: `tuning: {key: [values]}`; it is not a part of a run."""
Fraction = Annotated[float, Interval(gt=0, lt=1)]
TABLES: dict[str, tuple[Mapping[str, Callable[..., Any]], tuple[Callable[..., Any], ...]]] = {
    "label_loss": (LABEL_LOSSES, (Weighted,)),
    "loss": (LOSSES, (Weighted, ObjectiveOptions)),
    "selection": (SELECTIONS, ()),
    "proxy": (PROXIES, ()),
    "readout": (READOUTS, ()),
}
"""Sections that name an entry of a table: the table, and what the section holds options of beside the entry."""
FIXED: dict[str, Callable[..., Any]] = {"inputs": fit_scaling, "training": Training}
"""Sections of every config: what they hold options of."""


@dataclass(frozen=True, kw_only=True)
class Common:
    """Keys of every config that stand in no section.

    Attributes:
        data: a feature file, or a file or folder of any other layout; null for the sample clips, rendered and
            extracted once.
        seed: of initial weights, batches, dropout and other draws, and of a validation split taken from train.
        device: "auto", "cpu", "cuda", "cuda:0", ...
        validation: share of the training clips set aside where the data has no validation split.
        train_per_class: clips of each class that are fitted on; null for all.
        unseen_classes: share of the classes that are kept for test alone; null for the data's own split.
    """

    data: Annotated[str, MinLen(1)] | None = None
    seed: Seed = 0
    device: Annotated[str, MinLen(1)] = "auto"
    validation: Fraction = 0.1
    train_per_class: Count | None = None
    unseen_classes: Fraction | None = None


@dataclass(frozen=True)
class Config:
    """A complete, checked config.

    Attributes:
        values: nested plain values, as they stand in YAML.
    """

    values: Mapping[str, Any]

    def __getitem__(self, key: str) -> Any:
        return self.values[key]

    @property
    def method(self) -> str:
        """Name the method."""
        return str(self.values["method"]["name"])

    @property
    def is_anchored(self) -> bool:
        """Tell whether a proxy stands for anchors."""
        return "proxy" in self.values and bool(prefix_of(self.values["proxy"]["name"]))

    def training(self) -> Training:
        """Build the `training` section."""
        return Training(**self.values["training"])

    def arguments(self) -> dict[str, Any]:
        """Give the options of the method and the sections it takes, as plain values."""
        own = {key: value for key, value in self.values["method"].items() if key != "name"}
        return own | {key: self.values[key] for key in sections(METHODS[self.method])}

    def yaml(self) -> str:
        """Write the config as YAML, ready to repeat the run."""
        return plain_yaml.dump(_plain(self.values), sort_keys=False, allow_unicode=True, width=110)

    def label(self) -> str:
        """Name what is trained, for folders and tables: the metric loss, or the label loss where that acts alone."""
        if "loss" not in self.values:
            return self.method
        if not self.values["loss"]["weight"] and "label_loss" in self.values:
            name = str(self.values["label_loss"]["name"])
            return name if self.method == DEFAULT_METHOD else f"{self.method}-{name}"
        loss = str(self.values.get("recipe") or self.values["loss"]["name"])
        name = prefix_of(self.values["proxy"]["name"]) + loss if "proxy" in self.values else loss
        return name if self.method == DEFAULT_METHOD else f"{self.method}-{name}"


def resolve(values: Mapping[str, Any], places: Mapping[str, str] | None = None) -> Config:
    """Check a config and complete it with the defaults of what it configures.

    Args:
        values: nested plain values; `method`, `loss`, `proxy`, ... may be a bare name.
        places: dotted key -> where it stands, for messages.

    Raises:
        InputError: an unknown key or name, or a value that is not possible; one line says where, what and what is.
    """
    try:
        return _resolved(values)
    except InputError as error:
        found = (places or {}).get(str(error).partition(":")[0])
        if found is None:
            raise
        raise InputError(f"{found}: {error}") from error


def _resolved(values: Mapping[str, Any]) -> Config:
    if not all(isinstance(key, str) for key in values):
        raise InputError(f"config: {as_yaml(list(values))} given; keys are words")
    if isinstance(values.get("data"), str):
        search_beside(Path(values["data"]))  # what lies beside the data may be named as module:name
    method = section_of(_with_name(values.get("method", DEFAULT_METHOD), DEFAULT_METHOD), "method")
    build = lookup(METHODS, method.name, "method")
    wanted = sections(build)
    named = {key: _with_name(values[key], wanted[key]) for key in wanted if key in values and key in TABLES}
    own = {"loss": wanted["loss"]} if wanted.get("loss", REQUIRED) is not REQUIRED else {}
    values = expand_loss({**own, **values, **named})
    if "proxy" not in wanted and "proxy" in values and not prefix_of(section_of(values["proxy"], "proxy").name):
        del values["proxy"]  # what "--loss NAME" says to methods that know proxies
    recipe = ["recipe"] if "loss" in wanted else []
    known = ["method", *schema(Common), *FIXED, TUNING, *wanted, *recipe]
    for key in values:
        if key not in known:
            raise InputError(f"{key}: method {method.name} knows no such key; {suggestion(key, known)}")
    complete: dict[str, Any] = {
        "method": {"name": method.name} | checked_options(build, method.options, "method", name=method.name)
    }
    complete |= checked_options(Common, {key: values[key] for key in schema(Common) if key in values}, "")
    for section, entry in FIXED.items():
        complete[section] = checked_options(entry, _mapping(values, section), section, name=section)
    if "recipe" in values:
        complete["recipe"] = checked(Annotated[str, Choice(RECIPES)], values["recipe"], "recipe")
    for section, default in wanted.items():
        complete[section] = _section(section, values.get(section, default), complete)
    _check_tuning(values)
    return Config(complete)


def tuning_space(values: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Say what a search with equal budgets tries: what the config's `tuning` names, else what the options' types mark.

    Raises:
        InputError: not a mapping of keys to lists of values.
    """
    _check_tuning(values)
    if TUNING in values:
        return {key: list(choices) for key, choices in values[TUNING].items()}
    config = resolve(values)
    entries: dict[str, Mapping[str, Option]] = {section: schema(entry) for section, entry in reversed(FIXED.items())}
    entries["method"] = schema(METHODS[config.method])
    found = {f"{s}.{o.name}": list(o.tuning) for s, known in entries.items() for o in known.values()}
    return {key: choices for key, choices in found.items() if choices}


def _section(section: str, given: Any, complete: Mapping[str, Any]) -> Any:
    if given is REQUIRED:
        raise InputError(f"{section}: the section is missing; configs/aadml.yaml shows one")
    if section == "directions":
        names = [given] if isinstance(given, str) else given
        parse_directions(checked(Annotated[tuple[str, ...], Len(1, 64)], names, section))
        return list(names)
    if section == "network":
        options = vars(given) if isinstance(given, NetworkOptions) else _mapping({section: given}, section)
        return checked_options(NetworkOptions, options, section, name=section)
    table, shared = TABLES[section]
    chosen = section_of(given, section)
    entry = lookup(table, chosen.name, section.replace("_", " "))
    options = dict(chosen.options)
    if section == "selection" and "score" in schema(entry) and "score" in complete.get("loss", {}):
        options = {"score": complete["loss"]["score"]} | options  # a selection ranks in the score of the loss
    found: dict[str, Any] = {"name": chosen.name}
    for group in shared:
        found |= checked_options(group, {key: options.pop(key) for key in schema(group) if key in options}, section)
    return found | checked_options(entry, options, section, name=chosen.name)


def _with_name(given: Any, default: Any) -> Any:
    """Give a section that names no entry the name, and the options, of the section's default."""
    if not isinstance(given, Mapping) or "name" in given or default is REQUIRED:
        return given
    return {**({"name": default} if isinstance(default, str) else default), **given}


def _mapping(values: Mapping[str, Any], section: str) -> Mapping[str, Any]:
    given = values.get(section, {})
    if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
        raise InputError(
            f"{section}: {as_yaml(given)} given; a mapping of options is possible, or leave the section out"
        )
    return given


def _check_tuning(values: Mapping[str, Any]) -> None:
    for key, choices in _mapping(values, TUNING).items():
        if not isinstance(choices, list) or not choices:
            raise InputError(f"{TUNING}.{key}: {as_yaml(choices)} given; a list of values to try is possible")


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value
