"""Options: annotated keyword-only arguments are the schema of a config section.

The type of an argument declares the possible values: `Annotated[float, Interval(gt=0, le=100)]`, with the constraints
of `annotated_types` and the markers of `option_types`. The `Args` of the docstring describe the option. Values from
files and command lines are checked by `validation`. A direct call from Python is not checked.
"""

import inspect
import json
import re
import sys
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, is_dataclass, replace
from functools import cache
from types import SimpleNamespace
from typing import Any, Final, TypeAlias, TypeVar, get_args, get_type_hints

from aadml.feature_extraction.ground.consent import place_of
from aadml.feature_extraction.ground.errors import InputError, without_secrets
from aadml.feature_extraction.ground.json_values import JsonObject
from aadml.feature_extraction.ground.option_types import (
    NoOption,
    OnlyWith,
    OwnSection,
    Scalar,
    Tuning,
    metadata_of,
    possible,
)
from aadml.feature_extraction.ground.registry import suggestion

T = TypeVar("T")

Options: TypeAlias = Mapping[str, JsonObject]
"""Options of several entries: section (for extractors: modality) -> option -> value."""
REQUIRED: Final = inspect.Parameter.empty
"""Default of an option that must be set."""
LONGEST = 60
"""Maximum number of characters of a value in a message."""
_REMOVED = "removed_options"


class OptionValues(SimpleNamespace):
    """Immutable options as attributes; the config sections of a function or class are attributes as well."""

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{name} cannot be set, as options are immutable; build new options instead")

    def __contains__(self, name: str) -> bool:
        return name in vars(self)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """Return pydantic's schema for a JSON object."""
        from pydantic_core import core_schema

        return core_schema.no_info_after_validator_function(lambda values: cls(**values), core_schema.dict_schema())

    def plain(self) -> dict[str, object]:
        """Return the options as plain values, in the form of config files."""
        return {name: plain(value) for name, value in vars(self).items()}


def without(options: OptionValues, names: Container[str]) -> OptionValues:
    """Return the options whose names are not in `names`."""
    return OptionValues(**{name: value for name, value in vars(options).items() if name not in names})


def plain(value: Any) -> object:
    """Return an option or a section as plain values, in the form of config files."""
    if isinstance(value, OwnSection):
        return value.plain()
    return dict(vars(value)) if is_dataclass(value) else value


@dataclass(frozen=True)
class Option:
    """One key of a config section.

    Attributes:
        name: name of the argument.
        kind: annotated type.
        default: default value; REQUIRED if there is none.
        sentence: description, from the docstring.
        group: name of the argument that has the option as a field; "" if the option is not in a group.
        owner: dataclass of that argument; None if the option is not in a group.
    """

    name: str
    kind: Any
    default: Any
    sentence: str
    group: str = ""
    owner: Callable[..., object] | None = None

    @property
    def possible(self) -> str:
        """Description of the possible values."""
        return possible(self.kind)

    @property
    def written_default(self) -> str:
        """Default as YAML, without quotes around text; "" if a value is required."""
        return "" if self.default is REQUIRED else _written(self.default)

    def facts(self) -> JsonObject:
        """Return the option as plain values, for JSON."""
        default = None if self.default is REQUIRED else self.default
        facts = {"default": default, "required": self.default is REQUIRED, "possible": self.possible}
        conditions = {condition.option: list(condition.values) for condition in self.conditions}
        return {**facts, "tuning": list(self.tuning), "acts_with": conditions, "about": self.sentence}

    @property
    def conditions(self) -> tuple[OnlyWith, ...]:
        """Conditions for an effect of this option, each on the values of another option."""
        return tuple(marker for marker in metadata_of(self.kind) if isinstance(marker, OnlyWith))

    @property
    def company(self) -> str:
        """Conditions as text that follows `possible`; "" for an option without conditions."""
        return "".join(f"; has an effect only with {condition}" for condition in self.conditions)

    @property
    def tuning(self) -> tuple[Scalar, ...]:
        """Values that a hyperparameter search tries; () if the search does not change the option."""
        return next((marker.values for marker in metadata_of(self.kind) if isinstance(marker, Tuning)), ())


def schema(entry: Callable[..., object]) -> Mapping[str, Option]:
    """Return the options of a function or class: keyword-only arguments except config sections and `NoOption`.

    An argument of a dataclass type is a group of options, and several entries may share the dataclass. The fields
    of the dataclass become options. The default of such an option is the value of the field in the default of the
    argument. If the argument has no default, the default of the field is used.

    Returns:
        Options by name, in the order of the arguments.

    Raises:
        InputError: the type of an option is not imported at run time.
    """
    return _schema(inspect.unwrap(entry))


def sections(entry: Callable[..., object]) -> Mapping[str, Option]:
    """Return the config sections among the arguments of an entry: an `Option` for each name.

    The `kind` of the `Option` is the type of the argument without `Annotated`.
    """
    options = {option.name: option for option in _arguments(inspect.unwrap(entry)) if _is_section(option)}
    return {name: replace(o, kind=get_args(o.kind)[0]) if metadata_of(o.kind) else o for name, o in options.items()}


@cache
def _schema(entry: Callable[..., object]) -> Mapping[str, Option]:
    options: dict[str, Option] = {}
    for argument in _arguments(entry):
        if _is_section(argument) or any(isinstance(marker, NoOption) for marker in metadata_of(argument.kind)):
            continue
        if not (inspect.isclass(argument.kind) and is_dataclass(argument.kind)):
            options[argument.name] = argument
            continue
        for field in schema(argument.kind).values():
            default = getattr(argument.default, field.name, field.default)
            options[field.name] = replace(field, default=default, group=argument.name, owner=argument.kind)
    return options


@cache
def _arguments(entry: Callable[..., object]) -> list[Option]:
    """Return the keyword-only arguments of an entry, groups included; an unannotated argument accepts any value."""
    parameters = [p for p in inspect.signature(entry).parameters.values() if p.kind is inspect.Parameter.KEYWORD_ONLY]
    hints = _resolved({p.name: Any if p.annotation is p.empty else p.annotation for p in parameters}, entry)
    parts = reversed(getattr(entry, "__mro__", (entry,)))
    texts = {name: text for part in parts for name, text in sentences(inspect.getdoc(part) or "").items()}
    return [Option(p.name, hints[p.name], p.default, texts.get(p.name, "")) for p in parameters]


def removing(**former: object) -> Callable[[T], T]:
    """Return a decorator that sets the attribute `removed_options` of a function or class (see `without_removed`).

    Args:
        former: option -> the value that the code implements. For an option that never had an effect, `...` accepts
            any value.
    """

    def decorate(entry: T) -> T:
        setattr(entry, _REMOVED, former)
        return entry

    return decorate


def idle(entry: Callable[..., object], options: object, where: str) -> list[str]:
    """Return a warning for each idle option.

    An idle option differs from its default, but has no effect with the values of the other options.

    Args:
        entry: function or class of the options.
        options: object with the options as attributes.
        where: config section, for the warnings ("training").
    """
    warnings = []
    for name, option in schema(entry).items():
        value = getattr(options, name, option.default)
        if as_yaml(value) == as_yaml(option.default):
            continue
        missing = next((need for need in option.conditions if getattr(options, need.option) not in need.values), None)
        if missing is not None:
            warnings.append(
                f"{where}.{name}={_written(value)} changes nothing: it has an effect only with {missing}, "
                f"not {_written(getattr(options, missing.option))}"
            )
    return warnings


def _written(value: object) -> str:
    return value if isinstance(value, str) else as_yaml(value)


def _resolved(kinds: Mapping[str, type], entry: Callable[..., object]) -> Mapping[str, type]:
    """Resolve string annotations of options only; other types may be imported only for type checkers."""
    place = getattr(entry, "__module__", "")

    def stub() -> None: ...

    stub.__annotations__ = dict(kinds)
    try:
        return get_type_hints(stub, vars(sys.modules[place]) if place in sys.modules else {}, include_extras=True)
    except NameError as error:
        raise InputError(
            f"{place}: the type of an option is not imported at run time ({error}); "
            "import the type outside of `if TYPE_CHECKING`"
        ) from error


def completed(entry: Callable[..., object], given: OptionValues, where: str, *, name: str = "") -> OptionValues:
    """Return options completed with their defaults.

    The names of all options and the values of removed options are checked. Other values are not checked.

    Args:
        entry: function or class of the options.
        given: options; removed options are left out (see `without_removed`).
        where: config section, for messages ("loss").
        name: name of the entry, for messages; by default the name of `entry`.

    Returns:
        Every option of the entry, in the order of `schema`.

    Raises:
        InputError: an unknown option, a missing option without a default, or a wrong value of a removed option.
    """
    known, name = schema(entry), name or _name_of(entry)
    options = without_removed(entry, given, where, name=name)
    for key in vars(options):
        if key not in known:
            raise InputError(f"{where}.{key}: {name} has no such option; {suggestion(key, known)}")
    for key, option in known.items():
        if option.default is REQUIRED and key not in options:
            raise InputError(f"{where}.{key}: {name} needs this option; pass {option.possible}")
    return OptionValues(**{key: getattr(options, key, option.default) for key, option in known.items()})


def without_removed(entry: Callable[..., object], given: OptionValues, where: str, *, name: str = "") -> OptionValues:
    """Return options without the options that only earlier versions had.

    The attribute `removed_options` of the entry, or of a dataclass of its options, maps each removed option to the
    value that the code now implements (see `removing`).

    Args:
        entry: function or class of the options.
        given: options.
        where: config section, for messages ("loss").
        name: name of the entry, for messages; by default the name of `entry`.

    Raises:
        InputError: the value of a removed option differs from the implemented value.
    """
    declared = {inspect.unwrap(entry), *(option.owner for option in schema(entry).values())}
    removed = {key: former for part in declared for key, former in getattr(part, _REMOVED, {}).items()}
    for key in removed.keys() & vars(given).keys():
        if removed[key] is not ... and as_yaml(value := getattr(given, key)) != as_yaml(removed[key]):
            raise InputError(
                f"{where}.{key} is {as_yaml(value)}, but this option of {name or _name_of(entry)} was removed; leave "
                f"the option out (its value is always {as_yaml(removed[key])}), or use an earlier version of aadml"
            )
    return without(given, removed)


def _name_of(entry: Callable[..., object]) -> str:
    return getattr(entry, "__name__", str(entry)).strip("_").replace("_", "-")


def keywords(entry: Callable[..., object], values: OptionValues) -> dict[str, object]:
    """Return options and sections as keyword arguments of an entry: the options of a group become one dataclass."""
    options = {name: option for name, option in schema(entry).items() if name in values}
    single = [name for name, option in options.items() if option.owner is None]
    chosen = {name: getattr(values, name) for name in [*sections(entry), *single] if name in values}
    owners = {option.group: option.owner for option in options.values() if option.owner is not None}
    return chosen | {group: made(owner, values) for group, owner in owners.items()}


def made(kind: Callable[..., T], values: OptionValues) -> T:
    """Build a dataclass from the values of its options; other values are ignored."""
    return kind(**keywords(kind, values))


def _is_section(option: Option) -> bool:
    markers = metadata_of(option.kind)
    is_class = inspect.isclass(option.kind) and issubclass(option.kind, OwnSection)
    return is_class or any(isinstance(marker, OwnSection) for marker in markers)


def sentences(documentation: str) -> dict[str, str]:
    """Return a mapping of the names in `Args` and `Attributes` of a docstring to their one-line texts."""
    texts: dict[str, str] = {}
    for block in re.findall(r"^(?:Args|Attributes):\n((?:[ ]{4}.*\n?|\n)+)", documentation, re.MULTILINE):
        for name, text in re.findall(r"^ {4}(\w+): ((?:.*\n?)(?:^ {8}.*\n?)*)", block, re.MULTILINE):
            texts[name] = " ".join(text.split())
    return texts


def as_yaml(value: object) -> str:
    """Return a value as YAML on one line, shortened to `LONGEST` characters.

    For a function or class at the top level of a module, the text contains the name "module:name". For any other
    value that JSON cannot represent, the text is "a value of type T".
    """
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        code = place_of(value)
        text = f"the code '{code}'" if code else f"a value of type {type(value).__name__}"
    text = without_secrets(text)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."
