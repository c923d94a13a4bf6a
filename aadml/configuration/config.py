"""Configs: YAML, flags and `--set`, checked against the arguments of what they configure, complete once resolved."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import yaml

import aadml
from aadml.configuration import plain_yaml
from aadml.losses import LABEL_LOSSES, LOSSES
from aadml.methods import METHODS, READOUTS
from aadml.methods.inputs import fit_scaling
from aadml.methods.networks import label_space_network
from aadml.methods.settings import Training
from aadml.objective.composition import OBJECTIVE_OPTIONS
from aadml.objective.recipes import RECIPES
from aadml.proxies import PROXIES
from aadml.selections import SELECTIONS
from feature_extraction.ground.errors import InputError
from feature_extraction.ground.options import checked_options, schema
from feature_extraction.ground.places import search_beside
from feature_extraction.ground.tables import Joined, lookup, suggestion

TABLES: dict[str, tuple[Mapping[str, Callable[..., Any]], dict[str, Any]]] = {
    "label_loss": (LABEL_LOSSES, {"weight": 1.0}),
    "loss": (LOSSES, OBJECTIVE_OPTIONS),
    "selection": (SELECTIONS, {}),
    "proxy": (PROXIES, {}),
    "readout": (READOUTS, {}),
}
"""Sections that name an entry of a table: the table, and what the section takes beside the entry's own options."""

COMMON: dict[str, Any] = {
    "method": "aadml",
    "data": None,
    "seed": 0,
    "device": "auto",
    "validation": 0.1,
    "train_per_class": None,
    "unseen_classes": None,
}
"""Keys of every config. `validation`: share of the training clips set aside where the data has no validation split;
`train_per_class`: clips of each class that are fitted on, null for all; `unseen_classes`: share of the classes that are
kept for test alone, null for the data's own split."""
PREFIX = "aa-"
SEARCH = "search"
"""A config may say what a search with equal budgets tries: `search: {key: [values]}`; it is no part of a run."""


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

    def training(self) -> Training:
        """Build the `training` section."""
        return Training(**self.values["training"])

    def arguments(self) -> dict[str, Any]:
        """Give the keyword arguments of the method's builder."""
        own = {key: value for key, value in self.values["method"].items() if key != "name"}
        return own | {key: self.values[key] for key in sections_of(self.method)}

    def yaml(self) -> str:
        """Write the config as YAML, ready to repeat the run."""
        return yaml.safe_dump(_plain(self.values), sort_keys=False, allow_unicode=True, width=110)

    def label(self) -> str:
        """Name what is trained, for folders and tables: the metric loss, or the label loss where that acts alone."""
        if "loss" not in self.values:
            return self.method
        if not self.values["loss"].get("weight", 1.0) and "label_loss" in self.values:
            name = str(self.values["label_loss"]["name"])
            return name if self.method == "aadml" else f"{self.method}-{name}"
        loss = str(self.values.get("recipe") or self.values["loss"]["name"])
        anchored = self.values.get("proxy", {}).get("name") == "anchor-aware"
        name = f"{PREFIX}{loss}" if anchored else loss
        return name if self.method == "aadml" else f"{self.method}-{name}"


def configs_folder() -> Path:
    """Find the shipped configs: beside the package in a checkout, inside it once installed."""
    package = Path(aadml.__file__).parent
    inside = package / "configs"
    return inside if inside.is_dir() else package.parent / "configs"


def read_yaml(name: str | Path) -> dict[str, Any]:
    """Read a config file, given by path or by the name of a shipped one ("paper").

    Raises:
        InputError: no such file, not YAML, or not a mapping.
    """
    path = Path(name)
    shipped = configs_folder() / f"{name}.yaml"
    if not path.is_file() and path.suffix == "" and shipped.is_file():
        path = shipped
    if not path.is_file():
        known = ", ".join(sorted(p.stem for p in configs_folder().glob("*.yaml")))
        raise InputError(f"{name}: no such config file; give a path, or one of the shipped configs: {known}")
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not YAML ({' '.join(str(error).split())})") from error
    return parse_yaml(text, path)


def parse_yaml(text: str, place: Path) -> dict[str, Any]:
    """Read the text of a config file.

    Args:
        text: YAML.
        place: where it was read, for the message.

    Raises:
        InputError: not YAML, or not a mapping.
    """
    try:
        values = plain_yaml.load(text)
    except yaml.YAMLError as error:
        raise InputError(f"{place}: not YAML ({' '.join(str(error).split())})") from error
    if not isinstance(values, dict):
        raise InputError(f"{place}: a config is a mapping of sections, not a {type(values).__name__}")
    return values


def with_setting(values: Mapping[str, Any], path: str, value: Any) -> dict[str, Any]:
    """Return `values` with the key at a dotted path ("proxy.k") set.

    `loss` alone takes a shorthand: "aa-triplet" also sets the proxy, "triplet" takes it away, "hard-triplet" brings its
    selection; the options of the loss before are dropped.
    """
    if path == "loss" and isinstance(value, str):
        proxy = values.get("proxy") if value.startswith(PREFIX) else "identity"
        return _without_loss(values) | _expand_loss({"loss": value} | ({"proxy": proxy} if proxy else {}))
    head, _, rest = path.partition(".")
    changed = dict(values)
    if not rest:
        return changed | {head: value}
    inner = changed.get(head)
    inner = {"name": inner} if isinstance(inner, str) else dict(inner or {})
    return changed | {head: with_setting(inner, rest, value) if "." in rest else inner | {rest: value}}


def parse_setting(text: str) -> tuple[str, Any]:
    """Read "key=value" of `--set`; the value is YAML.

    Raises:
        InputError: no "=", or a value that is not YAML.
    """
    path, sign, value = text.partition("=")
    if not sign or not path.strip():
        raise InputError(f"--set {text}: write it as key=value, for example proxy.k=5")
    try:
        return path.strip(), plain_yaml.load(value)
    except yaml.YAMLError as error:
        raise InputError(f"--set {text}: the value is not YAML") from error


def resolve(values: Mapping[str, Any]) -> Config:
    """Check a config and complete it with the defaults of what it configures.

    Args:
        values: nested plain values; `method`, `loss`, `proxy`, ... may be a bare name.

    Raises:
        InputError: an unknown key or name (the nearest one is given), or a value of the wrong kind.
    """
    if isinstance(values.get("data"), str):
        search_beside(Path(values["data"]))  # what lies beside the data may be named as module:name
    values = _expand_loss(dict(values))
    method = _named(values.get("method", COMMON["method"]))
    build = lookup(METHODS, method["name"], "method")
    wanted = sections_of(method["name"])
    if "proxy" not in wanted and values.get("proxy") == "identity":
        del values["proxy"]  # what "--loss NAME" says to methods that know proxies
    known = [*COMMON, "inputs", "training", SEARCH, *wanted, *(["recipe"] if "loss" in wanted else [])]
    for key in values:
        if key not in known:
            raise InputError(f"config: method {method['name']} knows no key '{key}'; {suggestion(key, known)}")
    complete: dict[str, Any] = {"method": _method_section(build, method)}
    complete |= {key: values.get(key, default) for key, default in COMMON.items() if key != "method"}
    complete["inputs"] = checked_options(fit_scaling, values.get("inputs") or {}, "inputs")
    complete["training"] = _training(values.get("training") or {})
    if "recipe" in values:
        complete["recipe"] = values["recipe"]
    for section in wanted:
        complete[section] = _section(section, _following(section, values, complete), build)
    _check_common(complete)
    search_space(values)
    return Config(complete)


def search_space(values: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Read what a config says a search may try: key -> values; empty where it says nothing.

    Raises:
        InputError: not a mapping of keys to lists of values.
    """
    space = values.get(SEARCH) or {}
    if not isinstance(space, Mapping):
        raise InputError(f"{SEARCH}: {space!r} is not a mapping of config keys to lists of values")
    for key, choices in space.items():
        if not isinstance(choices, list) or not choices:
            raise InputError(f"{SEARCH}.{key}: {choices!r} is not a list of values to try")
    return {str(key): list(choices) for key, choices in space.items()}


def sections_of(method: str) -> list[str]:
    """Name the sections of the config that a method reads."""
    arguments = schema(lookup(METHODS, method, "method"))
    return [name for name in arguments if name in (*TABLES, "network", "directions")]


def _method_section(build: Callable[..., Any], method: Mapping[str, Any]) -> dict[str, Any]:
    own = {key: value for key, value in schema(build).items() if key not in (*TABLES, "network", "directions")}
    given = {key: value for key, value in method.items() if key != "name"}
    for key in given:
        if key not in own:
            raise InputError(f"method.{key}: {method['name']} takes no such option; {suggestion(key, own)}")
    checked = checked_options(_only(build, own), given, "method")
    return {"name": method["name"]} | checked


def _only(build: Callable[..., Any], names: Mapping[str, Any]) -> Callable[..., Any]:
    """Give a callable whose keyword-only arguments are a part of `build`'s, for checking."""
    signature = inspect.signature(build)

    def part(**options: Any) -> None: ...

    part.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[p for p in signature.parameters.values() if p.name in names]
    )
    part.__name__ = build.__name__
    return part


def _following(section: str, values: Mapping[str, Any], complete: Mapping[str, Any]) -> Any:
    """Give a section as it was written; a selection that does not say in what score it ranks follows the loss's."""
    given = values.get(section)
    if section != "selection" or given is None or "score" not in complete.get("loss", {}):
        return given
    named = _named(given)
    select = lookup(SELECTIONS, named["name"], "selection")
    return {"score": complete["loss"]["score"]} | named if "score" in schema(select) else given


def _section(section: str, given: Any, build: Callable[..., Any]) -> Any:
    default = schema(build)[section]
    if given is None:
        if default is inspect.Parameter.empty:
            raise InputError(f"config: the section '{section}' is missing; configs/aadml.yaml shows one")
        given = default
    if section == "directions":
        return [given] if isinstance(given, str) else list(given)
    if section == "network":
        return checked_options(label_space_network, given, section)
    table, shared = TABLES[section]
    named = _named(given)
    entry = lookup(table, named["name"], section.replace("_", " "))
    options = {key: value for key, value in named.items() if key != "name"}
    own = {key: value for key, value in options.items() if key not in shared}
    return (
        {"name": named["name"]}
        | shared
        | {k: options[k] for k in shared if k in options}
        | checked_options(_without_context(entry), own, section)
    )


def _without_context(entry: Callable[..., Any]) -> Callable[..., Any]:
    """Leave out what a loss that owns parameters is told by the house (dimension, features, classes)."""
    names = {key: value for key, value in schema(entry).items() if key not in ("dimension", "features", "classes")}
    return _only(entry, names)


def _training(given: Mapping[str, Any]) -> dict[str, Any]:
    defaults = {field.name: getattr(Training, field.name) for field in fields(Training)}

    def training(**options: Any) -> None: ...

    training.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(k, inspect.Parameter.KEYWORD_ONLY, default=v) for k, v in defaults.items()]
    )
    checked = checked_options(training, given, "training")
    Training(**checked)
    return checked


def _expand_loss(values: dict[str, Any]) -> dict[str, Any]:
    """Replace the shorthand of a loss ("aa-hard-triplet") by the sections that it stands for.

    What stands in `values` already wins over what a recipe brings.
    """
    if not values.get("loss") or "recipe" in values:
        return values
    section = _named(values["loss"])
    name = str(section.pop("name"))
    if name.startswith(PREFIX):
        name = name.removeprefix(PREFIX)
        proxy = _named(values.get("proxy") or "anchor-aware")
        values = values | {"proxy": proxy | {"name": "anchor-aware"}}
    if name not in RECIPES:
        lookup(Joined(LOSSES, RECIPES), name, "loss")
        return values | {"loss": {"name": name} | section}
    recipe = RECIPES[name]
    brought = {"selection": recipe.selection, "directions": recipe.directions}
    brought = {key: value for key, value in brought.items() if value is not None}
    return brought | values | {"recipe": name, "loss": dict(recipe.loss) | section}


def _without_loss(values: Mapping[str, Any]) -> dict[str, Any]:
    """Drop the loss, and where it was a recipe, the selection and the directions that it had brought."""
    dropped = ("loss", "recipe", "selection", "directions") if "recipe" in values else ("loss",)
    return {key: value for key, value in values.items() if key not in dropped}


def _named(section: Any) -> dict[str, Any]:
    if isinstance(section, str):
        return {"name": section}
    if not isinstance(section, Mapping) or "name" not in section:
        raise InputError(f"config: {section!r} must be a name, or a mapping with a 'name'")
    return dict(section)


def _check_common(values: Mapping[str, Any]) -> None:
    if not isinstance(values["seed"], int) or isinstance(values["seed"], bool) or values["seed"] < 0:
        raise InputError(f"seed: {values['seed']!r} is not a whole number of at least 0")
    share = values["validation"]
    if not isinstance(share, int | float) or not 0 < share < 1:
        raise InputError(f"validation: {share!r} is not a share of the training clips between 0 and 1")
    count = values["train_per_class"]
    if count is not None and (not isinstance(count, int) or isinstance(count, bool) or count < 1):
        raise InputError(f"train_per_class: {count!r} is not a number of clips of at least 1, or null for all")
    unseen = values["unseen_classes"]
    if unseen is not None and (isinstance(unseen, bool) or not isinstance(unseen, int | float) or not 0 < unseen < 1):
        raise InputError(f"unseen_classes: {unseen!r} is not a share of the classes between 0 and 1, or null")


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value
