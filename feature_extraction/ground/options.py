"""Options: annotated keyword-only arguments are the schema of a config section, and all else is derived from them.

The type of an argument says what is possible: `Annotated[float, Interval(gt=0, le=100)]`, with the constraints of
`annotated_types` and the markers of `ground/markers.py`; the `Args` of the docstring say what it is. What comes from
outside is checked by `ground/validation.py`. A direct call from Python is not checked.
"""

import inspect
import json
import re
import sys
from collections.abc import Callable, Container, Mapping
from dataclasses import asdict, dataclass, is_dataclass, replace
from enum import Enum
from functools import cache
from typing import Any, Final, Literal, TypeAlias, TypeVar, get_args, get_type_hints

from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import Json, JsonObject
from aadml.feature_extraction.ground.option_types import NoOption, OnlyWith, OwnSection, Tuning, metadata_of, possible
from aadml.feature_extraction.ground.registry import suggestion

T = TypeVar("T")


class Required(Enum):
    """What stands in the place of a default that there is not."""

    REQUIRED = "required"


REQUIRED: Final = Required.REQUIRED
"""The default of an option that has none."""
Default: TypeAlias = Json | Literal[Required.REQUIRED]
LONGEST = 60
"""Characters of a refused value that a message repeats."""


@dataclass(frozen=True)
class Option:
    """One key of a config section.

    Attributes:
        name: of the argument, letter for letter.
        kind: its annotated type.
        default: its value where none is given; REQUIRED where one must be.
        sentence: what it is, from the docstring.
        group: the argument that it is a field of, "" for none.
        owner: the dataclass of that argument.
    """

    name: str
    kind: Any
    default: Default
    sentence: str
    group: str = ""
    owner: Callable[..., object] | None = None

    @property
    def possible(self) -> str:
        """Say which values are possible."""
        return possible(self.kind)

    @property
    def written_default(self) -> str:
        """Write the default as YAML has it; empty where a value must be given."""
        if self.default is REQUIRED:
            return ""
        return self.default if isinstance(self.default, str) else as_yaml(self.default)

    def facts(self) -> JsonObject:
        """Say all of it in plain values."""
        default = None if self.default is REQUIRED else self.default
        facts = {"default": default, "required": self.default is REQUIRED, "possible": self.possible}
        conditions = {one.option: list(one.values) for one in self.conditions}
        return {**facts, "tuning": list(self.tuning), "acts_with": conditions, "about": self.sentence}

    @property
    def conditions(self) -> tuple[OnlyWith, ...]:
        """List what other options must be for this one to act."""
        return tuple(one for one in metadata_of(self.kind) if isinstance(one, OnlyWith))

    @property
    def company(self) -> str:
        """Say what it acts with, to follow what is possible; empty where it always acts."""
        return "".join(f"; acts with {one}" for one in self.conditions)

    @property
    def tuning(self) -> tuple[Json, ...]:
        """List the values that a search tries; none where it leaves the option alone."""
        return next((one.values for one in metadata_of(self.kind) if isinstance(one, Tuning)), ())


def schema(entry: Callable[..., object]) -> Mapping[str, Option]:
    """Read the options of a function or class: its annotated keyword-only arguments.

    An argument whose type is a dataclass is a group of options that several entries share: its fields stand in the
    schema as if they were arguments, with the defaults of the argument's own default.

    Returns:
        name -> option, in order.
    """
    return _schema(inspect.unwrap(entry))


def sections(entry: Callable[..., object]) -> Mapping[str, Default]:
    """Name the sections of the config that an entry takes beside its options: name -> default, REQUIRED for none."""
    found = {one.name: one.default for one in _arguments(inspect.unwrap(entry)) if _is_section(one)}
    return {name: asdict(value) if is_dataclass(value) else value for name, value in found.items()}


@cache
def _schema(entry: Callable[..., object]) -> Mapping[str, Option]:
    found: dict[str, Option] = {}
    for one in _arguments(entry):
        if any(isinstance(marker, NoOption | OwnSection) for marker in metadata_of(one.kind)):
            continue
        if not (inspect.isclass(one.kind) and is_dataclass(one.kind)):
            found[one.name] = one
            continue
        for inner in schema(one.kind).values():
            default = getattr(one.default, inner.name, inner.default)
            found[inner.name] = replace(inner, default=default, group=one.name, owner=one.kind)
    return found


@cache
def _arguments(entry: Callable[..., object]) -> list[Option]:
    """Read the keyword-only arguments of an entry, a group of options as one; what is not annotated may be anything."""
    found = [p for p in inspect.signature(entry).parameters.values() if p.kind is inspect.Parameter.KEYWORD_ONLY]
    kinds = {p.name: Any if p.annotation is p.empty else p.annotation for p in found}
    texts = sentences(inspect.getdoc(entry) or "")
    hints = _resolved(kinds, entry)
    return [
        Option(p.name, hints[p.name], REQUIRED if p.default is p.empty else p.default, texts.get(p.name, ""))
        for p in found
    ]


def idle(entry: Callable[..., object], values: JsonObject, where: str) -> list[str]:
    """Say of each option that has another value than its default and cannot act beside the others that it does not.

    Args:
        entry: whose options they are.
        values: of all of them.
        where: the config section, for the message ("training").
    """
    found = []
    for name, option in schema(entry).items():
        if name not in values or as_yaml(values[name]) == as_yaml(option.default):
            continue
        missing = next((one for one in option.conditions if values[one.option] not in one.values), None)
        if missing is not None:
            given = f"{where}.{name}={_written(values[name])}"
            found.append(f"{given} changes nothing: it acts with {missing}, not {_written(values[missing.option])}")
    return found


def _written(value: Json) -> str:
    return value if isinstance(value, str) else as_yaml(value)


def _resolved(kinds: Mapping[str, type], entry: Callable[..., object]) -> Mapping[str, type]:
    """Resolve annotations that are text; those of other arguments may name what is imported for type checkers alone."""
    place = getattr(entry, "__module__", "")

    def stub() -> None: ...

    stub.__annotations__ = dict(kinds)
    try:
        return get_type_hints(stub, vars(sys.modules[place]) if place in sys.modules else {}, include_extras=True)
    except NameError as error:
        raise InputError(f"{place}: an option's type is not imported while the module runs ({error})") from error


def completed(
    entry: Callable[..., object], given: JsonObject, where: str, *, name: str = "", without: Container[str] = ()
) -> dict[str, Json]:
    """Complete `given` with the defaults of an entry's options, refusing what it does not take; values pass unchecked.

    An attribute `removed_options` of the entry maps options that files of earlier versions hold to the value that the
    entry implements now. Such an option is left out of the result.

    Args:
        entry: whose options are completed.
        given: name -> value.
        where: the config section, for the message ("loss").
        name: of the entry, for the message; that of the function by default.
        without: options that are not for the user to choose.

    Returns:
        Every option of the entry, in its order.

    Raises:
        InputError: an option that the entry does not take, a removed one of another value, or a missing one.
    """
    known = {key: option for key, option in schema(entry).items() if key not in without}
    removed: JsonObject = getattr(entry, "removed_options", {})
    name = name or getattr(entry, "__name__", str(entry)).strip("_").replace("_", "-")
    for key in given:
        if key in removed and as_yaml(given[key]) != as_yaml(removed[key]):
            raise InputError(
                f"{where}.{key}: {as_yaml(given[key])} given; this option of {name} was removed, and"
                f" {as_yaml(removed[key])} alone is possible; leave it out, or use an earlier version of aadml"
            )
        if key not in known and key not in removed:
            raise InputError(f"{where}.{key}: {name} takes no such option; {suggestion(str(key), known)}")
    complete: dict[str, Json] = {}
    for key, option in known.items():
        value = given.get(key, option.default)
        if value is REQUIRED:
            raise InputError(f"{where}.{key}: {name} needs this option; {option.possible} is possible")
        complete[key] = value
    return complete


def keywords(entry: Callable[..., object], values: JsonObject) -> dict[str, object]:
    """Turn options and sections into the keyword arguments of an entry: options of a group become one dataclass."""
    plain: dict[str, Json] = {}
    groups: dict[str, tuple[Callable[..., object], dict[str, Json]]] = {}
    for name, option in schema(entry).items():
        if name not in values:
            continue
        own = plain if option.owner is None else groups.setdefault(option.group, (option.owner, {}))[1]
        own[name] = values[name]
    taken = {one.name: one for one in _arguments(inspect.unwrap(entry)) if one.name in values and _is_section(one)}
    built = {name: _built(get_args(one.kind)[0], values[name]) for name, one in taken.items()}
    return {**built, **plain, **{group: owner(**own) for group, (owner, own) in groups.items()}}


def made(kind: Callable[..., T], values: JsonObject) -> T:
    """Build a dataclass of those of its options that stand among `values`."""
    return kind(**keywords(kind, values))


def _built(kind: type, section: Json) -> object:
    return kind(**section) if is_dataclass(kind) and isinstance(section, Mapping) else section


def _is_section(one: Option) -> bool:
    return any(isinstance(marker, OwnSection) for marker in metadata_of(one.kind))


def sentences(documentation: str) -> dict[str, str]:
    """Read what the sections `Args` and `Attributes` of a docstring say of each name: name -> text, as one line."""
    found: dict[str, str] = {}
    for block in re.findall(r"^(?:Args|Attributes):\n((?:[ ]{4}.*\n?|\n)+)", documentation, re.MULTILINE):
        for name, text in re.findall(r"^ {4}(\w+): ((?:.*\n?)(?:^ {8}.*\n?)*)", block, re.MULTILINE):
            found[name] = " ".join(text.split())
    return found


def as_yaml(value: object) -> str:
    """Write a refused value as YAML has it, in one short line."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        text = f"a {type(value).__name__}"
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."
