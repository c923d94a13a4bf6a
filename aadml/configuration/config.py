"""Configs, which are checked against the arguments of the configured objects and completed with defaults."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from annotated_types import Interval, Len, MinLen

from aadml.comparison.options import Count, Seed
from aadml.configuration import strict_yaml
from aadml.configuration.overrides import Settings, expand_loss, is_recipe, named, setting_pairs, with_setting
from aadml.feature_extraction.foreign.tables import shown_address
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.import_paths import search_beside
from aadml.feature_extraction.ground.option_types import Choice
from aadml.feature_extraction.ground.options import REQUIRED, Option, OptionValues, as_yaml, plain, schema, sections
from aadml.feature_extraction.ground.registry import lookup, suggestion
from aadml.feature_extraction.ground.strings import listed
from aadml.feature_extraction.ground.validation import built, checked, checked_options
from aadml.methods import METHODS
from aadml.methods.inputs import Inputs
from aadml.methods.towers.options import PretrainedOptions
from aadml.methods.training.settings import AUTO, Precision, Training
from aadml.objective.composition import Weighted
from aadml.objective.objective import parse_directions
from aadml.objective.recipes import RECIPES
from aadml.objective.sections import EntrySection, is_named
from aadml.proxies import prefix_of

DEFAULT_METHOD = "aadml"
TUNING = "tuning"
"""Section with the values that a search with equal budgets tries, `tuning: {key: [values]}`; not part of a run."""
Fraction = Annotated[float, Interval(gt=0, lt=1)]
FIXED: dict[str, Callable[..., object]] = {"inputs": Inputs, "training": Training}
"""Sections of every config -> declaration of their options."""
TOWERS = "towers"
"""Optional section of pretrained networks."""


@dataclass(frozen=True, kw_only=True)
class Common:
    """Keys of every config outside sections.

    Attributes:
        data: a feature file, or a file or folder of any other layout; by default the sample clips, which are rendered
            and extracted once.
        seed: seed of initial weights, batches, dropout and other draws, and of a validation split taken from train.
        device: "auto", "cpu", "cuda", "cuda:0", ...
        validation: share of the training clips set aside for validation if the data have no validation split.
        train_per_class: number of clips of each class to train on; by default all.
        unlabelled: treatment of (1) training and validation clips without a label among labeled clips, and (2) training
            clips beyond `train_per_class`. "keep" uses both as clips without a label, and "drop" removes both. The
            default null keeps (1) and removes (2).
        unseen_classes: share of the classes that occur only in test; by default, the split of the data is used.
        relevance: relevance rule of the scores: "own" (only the query's partner), "label" (the query's class), "labels"
            (at least one shared class), "labels-graded" (more relevant with more shared classes), or a file of
            judgments; by default the rule of the data.
        cluster: column of the data, such as speaker or recording. For confidence intervals, the groups of test
            clips with equal values in the column are resampled; by default, single clips are resampled.
        modalities: modalities of the data to read, as [audio, visual] or "audio,visual"; by default all.
        texts: training texts of clips with several texts. "first" uses the first text of each clip. "drawn" uses
            one text of each clip, drawn again in each epoch. "all" pairs every text with its clip. In validation
            and test, all texts are queries and results. Captioned sound is paired with all of its captions, at most
            `method.captions` per clip, unless `texts` is "drawn".
    """

    data: Annotated[str, MinLen(1)] | None = None
    seed: Seed = 0
    device: Annotated[str, MinLen(1)] = "auto"
    validation: Fraction = 0.1
    train_per_class: Count | None = None
    unlabelled: Literal["keep", "drop"] | None = None
    unseen_classes: Fraction | None = None
    relevance: Annotated[str, MinLen(1)] | None = None
    cluster: Annotated[str, MinLen(1)] | None = None
    modalities: Annotated[tuple[str, ...], Len(1, 16)] | None = None
    texts: Literal["first", "drawn", "all"] = "first"


@dataclass(frozen=True, kw_only=True)
class Config:
    """A complete, checked config.

    Attributes:
        method: name of the method.
        options: options of the method.
        common: keys outside sections.
        inputs: the `inputs` section.
        training: the `training` section.
        towers: the `towers` section; None if the method reads features.
        recipe: a key of RECIPES, if the loss was chosen as a recipe; None otherwise. The other sections may replace
            those of the recipe.
        sections: the other sections of the method: `loss`, `proxy`, `network`, ...
    """

    method: str
    options: OptionValues
    common: Common
    inputs: Inputs
    training: Training
    towers: PretrainedOptions | None = None
    recipe: str | None
    sections: OptionValues

    @property
    def values(self) -> dict[str, object]:
        """Nested plain values, as in YAML."""
        method = {"method": {"name": self.method, **self.options.plain()}}
        fixed = {"inputs": vars(self.inputs), "training": vars(self.training)}
        towers = {TOWERS: vars(self.towers)} if self.towers else {}
        recipe = {"recipe": self.recipe} if self.recipe else {}
        return {**method, **vars(self.common), **fixed, **towers, **recipe, **self.sections.plain()}

    def __getitem__(self, key: str) -> object:
        return self.values[key]

    @property
    def data(self) -> str:
        """Path of the data.

        Raises:
            InputError: the config has no data.
        """
        if not self.common.data:
            raise InputError("data: the config has no data; set data to a feature file")
        return self.common.data

    def section(self, key: str) -> EntrySection | None:
        """Return the section `key`, such as "loss", that chooses an entry of a registry; None without the section."""
        return getattr(self.sections, key, None)

    @property
    def prefix(self) -> str:
        """Prefix, such as "aa-", of the proxy that replaces anchors; "" if no proxy replaces anchors."""
        proxy = self.section("proxy")
        return prefix_of(proxy.name) if proxy else ""

    def arguments(self) -> OptionValues:
        """Return the options and the sections of the method."""
        return OptionValues(**vars(self.options) | vars(self.sections))

    def on(self, data: str) -> "Config":
        """Return the config with `data` as its data."""
        return replace(self, common=replace(self.common, data=data))

    def computed_on(self, device: str) -> "Config":
        """Return the config with `device` as its device."""
        return replace(self, common=replace(self.common, device=device))

    def seeded(self, seed: int) -> "Config":
        """Return the config with `seed` as its seed."""
        return replace(self, common=replace(self.common, seed=seed))

    def trained_in(self, precision: Precision) -> "Config":
        """Return the config with `precision` instead of "auto" as `training.precision`. Another value is kept."""
        if self.training.precision != AUTO:
            return self
        return replace(self, training=replace(self.training, precision=precision))

    def continuing(self, stored: Training) -> "Config":
        """Return the config with the precision and the criterion of `stored`, the training section of its run.

        The precision replaces only the value "auto". The criterion replaces only a list of several criteria that
        contains this criterion.
        """
        config, names = self.trained_in(stored.precision), listed(self.training.criterion)
        if len(names) == 1 or stored.criterion not in names:
            return config
        return replace(config, training=replace(config.training, criterion=stored.criterion))

    @property
    def shown(self) -> "Config":
        """The config for pages and trackers. The address of its data lacks user, query and fragment."""
        return self.on(shown_address(self.common.data)) if self.common.data else self

    def yaml(self, *, recipe: bool = True) -> str:
        """Return the config as YAML, for repeating the run.

        Without the recipe, which only names other sections, configs of equal training have equal texts.
        """
        values = self.values if recipe else replace(self, recipe=None).values
        return strict_yaml.dump(values, sort_keys=False, allow_unicode=True, width=110)

    def label(self) -> str:
        """Return the name of the config in folders and tables, such as "aa-triplet" or "few-labels-triplet".

        The name consists of the method, the prefix of the proxy, and the metric loss or its recipe. The default
        method is omitted. A recipe is omitted if its loss, selection or directions are replaced. If the weight of the
        metric loss is 0, a label loss replaces the metric loss and the prefix. Without a loss, the name is the method.
        """
        loss, label_loss = self.section("loss"), self.section("label_loss")
        if loss is None:
            return self.method
        alone = label_loss is not None and not loss.shared(Weighted).weight
        recipe = self.recipe if is_recipe(self.values) else None
        name = label_loss.name if label_loss and alone else self.prefix + (recipe or loss.name)
        return name if self.method == DEFAULT_METHOD else f"{self.method}-{name}"


def resolve(values: Mapping[str, object]) -> Config:
    """Return the checked and completed config of nested plain values; see `ConfigFile.resolve`.

    Raises:
        InputError: an unknown key or name, a missing section, or an invalid value.
    """
    return ConfigFile(values).resolve()


@dataclass(frozen=True)
class ConfigFile:
    """Content of a config file with the overrides of flags, before the config is resolved.

    Attributes:
        values: nested plain values; `method`, `loss`, `proxy`, ... may be a bare name.
        places: dotted key -> location such as "aadml.yaml, line 3", for messages.
    """

    values: Mapping[str, object]
    places: Mapping[str, str] = field(default_factory=dict)

    def changed(self, settings: Settings) -> "ConfigFile":
        """Return the content with the values of `settings`. The changed keys have no location in the file any more.

        Raises:
            InputError: `setting_pairs` or `with_setting` refuses the settings.
        """
        values, places = self.values, dict(self.places)
        for path, value in setting_pairs(settings):
            values = with_setting(values, path, value)
            places = {key: where for key, where in places.items() if key != path and not key.startswith(f"{path}.")}
        return ConfigFile(values, places)

    def tuning_space(self) -> dict[str, list[object]]:
        """Return the search space for tuning with equal budgets.

        The space is the section `tuning`, or else the search ranges of the options of `training`, `inputs` and the
        method.

        Returns:
            Dotted key -> values to try.

        Raises:
            InputError: `tuning` is not a mapping of keys to lists of values, or a config without `tuning` is invalid.
        """
        if TUNING in self.values:
            return self._lists_of_values()
        entries = {section: schema(entry) for section, entry in reversed(FIXED.items())}
        entries["method"] = schema(METHODS[self.resolve().method])
        space = {f"{s}.{o.name}": list(o.tuning) for s, known in entries.items() for o in known.values()}
        return {key: [*choices] for key, choices in space.items() if choices}

    def resolve(self, *, stored: bool = False) -> Config:
        """Return the config with checked values. Omitted values are the defaults of the configured objects.

        Args:
            stored: whether the config is complete, as stored in a run. If True, sections that name code from outside
                aadml are not changed, and metrics are not checked. Only training imports this code, with consent.

        Raises:
            InputError: an unknown key or name, a missing section, or an invalid value. The message has the location of
                the key if `places` contains the key.
        """
        try:
            return self._resolved(stored=stored)
        except InputError as error:
            place = self.places.get(re.split(":| is ", str(error), maxsplit=1)[0])
            if place is None:
                raise
            raise type(error)(f"{place}: {error}") from error

    def _resolved(self, *, stored: bool) -> Config:
        if not all(isinstance(key, str) for key in self.values):
            raise InputError(
                f"config: the keys {as_yaml(list(self.values))} are not all strings; pass only strings as keys"
            )
        if isinstance(data := self.values.get("data"), str):
            search_beside(Path(data))  # modules next to the data may be named as module:name
        method, options = named(self._entry("method", DEFAULT_METHOD), "method")
        build = lookup(METHODS, method, "method")
        wanted = sections(build)
        full = self._expanded(wanted, stored=stored)
        values = full.values
        known = ["method", *schema(Common), *FIXED, TOWERS, TUNING, *wanted, *(["recipe"] if "loss" in wanted else [])]
        for key in sorted(values, key=lambda name: name != "loss"):  # a loss also sets other sections
            if key not in known:
                within = full._section_of(key)
                advice = f"did you mean '{within}.{key}'?" if within else suggestion(key, known)
                raise InputError(f"{key}: method {method} has no such key; {advice}")
        if TUNING in values:
            self._lists_of_values()
        training = built(Training, full._options("training"), "training")
        if not stored:
            training.check()
        return Config(
            method=method,
            options=checked_options(build, options, "method", name=method),
            common=built(Common, OptionValues(**{key: values[key] for key in schema(Common) if key in values}), ""),
            inputs=built(Inputs, full._options("inputs"), "inputs"),
            training=training,
            towers=built(PretrainedOptions, full._options(TOWERS), TOWERS) if values.get(TOWERS) is not None else None,
            recipe=checked(Annotated[str, Choice(RECIPES)], values["recipe"], "recipe") if "recipe" in values else None,
            sections=full._sections(wanted, stored=stored),
        )

    def _expanded(self, wanted: Mapping[str, Option], *, stored: bool) -> "ConfigFile":
        """Return the content with the sections that the loss implies, and the defaults of the other sections."""
        values, defaults = dict(self.values), {key: plain(section.default) for key, section in wanted.items()}
        for key in wanted.keys() & values.keys():
            values[key] = self._entry(key, defaults[key]) if is_named(wanted[key].kind) else values[key]
        if isinstance(modalities := values.get("modalities"), str):
            values["modalities"] = [name.strip() for name in modalities.split(",")]
        if "loss" in wanted and not stored:
            values = expand_loss({"loss": defaults["loss"], **values})
        if "proxy" not in wanted and _names_identity(values.get("proxy", {})):
            del values["proxy"]  # "--loss NAME" also sets the proxy, which this method does not have
        return ConfigFile({**defaults, **values})

    def _section_of(self, option: str) -> str:
        """Return the first section that has the option `option`; "" if no section has this option."""
        named = {key: list(options) for key, options in self.values.items() if isinstance(options, Mapping)}
        by_section = named | {key: list(schema(declaration)) for key, declaration in FIXED.items()}
        return next((key for key, options in by_section.items() if option in options), "")

    def _options(self, section: str) -> OptionValues:
        """Return the options of a section that does not choose an entry of a registry."""
        options = self.values.get(section, {})
        if isinstance(options, Mapping) and all(isinstance(key, str) for key in options):
            return OptionValues(**options)
        raise InputError(
            f"{section} is {as_yaml(options)}; pass a mapping from option names to values, or leave out the section"
        )

    def _lists_of_values(self) -> dict[str, list[object]]:
        """Return the section `tuning`: key -> values to try."""
        space: dict[str, list[object]] = {}
        for key, choices in vars(self._options(TUNING)).items():
            if not isinstance(choices, list) or not choices:
                raise InputError(f"{TUNING}.{key} is {as_yaml(choices)}; pass a list of at least one value to try")
            space[key] = choices
        return space

    def _entry(self, key: str, default: Any) -> Any:
        """Return a section that chooses an entry. A section without a name is completed from `default`."""
        section = self.values.get(key, default)
        if default is REQUIRED or not isinstance(section, Mapping) or "name" in section:
            return section
        return {**(default if isinstance(default, Mapping) else {"name": default}), **section}

    def _sections(self, wanted: Mapping[str, Option], *, stored: bool) -> OptionValues:
        typed = OptionValues()
        for key, section in wanted.items():
            score = getattr(typed.loss.options, "score", None) if "loss" in typed else None
            typed = OptionValues(**vars(typed), **{key: self._section(key, section.kind, score, stored=stored)})
        return typed

    def _section(self, key: str, kind: Any, score: str | None, *, stored: bool) -> object:
        """Return a checked section; `score` is the score of the loss, or None for a loss without a score."""
        value: Any = self.values[key]
        if value is REQUIRED:
            raise InputError(
                f"{key}: the section is missing, but the method needs this section; add {key} to the config"
            )
        if key == "directions":
            names = checked(Annotated[tuple[str, ...], Len(1, 64)], [value] if isinstance(value, str) else value, key)
            parse_directions(names)
            return names
        if not is_named(kind):
            return built(kind, self._options(key), key)
        section = kind(*named(value, key))
        if stored and section.is_outside:
            return section
        if key == "selection" and score is not None and "score" in schema(section.entry):
            options = OptionValues(**{"score": score, **vars(section.options)})  # the selection ranks by the loss
            section = replace(section, options=options)
        return section.completed(check=True)


def _names_identity(proxy: Any) -> bool:
    """Return whether the section `proxy` names a proxy that leaves anchors unchanged; False without a name."""
    return not (isinstance(proxy, Mapping) and "name" not in proxy) and not prefix_of(named(proxy, "proxy")[0])
