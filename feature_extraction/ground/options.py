"""Options: annotated keyword-only arguments are the schema of a config section, and all else is derived from them.

The type of an argument says what is possible: `Annotated[float, Interval(gt=0, le=100)]`, with the constraints of
`annotated_types` and the markers of `feature_extraction.ground.markers`; the `Args` of the docstring say what it is.
`feature_extraction.ground.validation` checks what comes from outside. A direct call from Python is not checked.
"""

import difflib
import inspect
import re
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, is_dataclass, replace
from functools import cache
from typing import Any, TypeVar, get_type_hints

from feature_extraction.ground.errors import InputError
from feature_extraction.ground.markers import OwnSection, Told, Tuning, metadata_of, possible

T = TypeVar("T")


def nearest(name: str, choices: Iterable[str]) -> str:
    """Give the choice that is spelt most like `name`."""
    known = list(choices)
    found = difflib.get_close_matches(name, known, n=1, cutoff=0.0)
    return found[0] if found else ""


def lookup(table: Mapping[str, T], name: str, kind: str) -> T:
    """Return `table[name]`.

    Raises:
        InputError: no such entry; the message names the nearest one and all there are.
    """
    if name not in table:
        raise InputError(f"no {kind} '{name}'; did you mean '{nearest(name, table)}'? There are: {', '.join(table)}")
    return table[name]


REQUIRED = inspect.Parameter.empty
"""The default of an option that has none."""


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
    default: object
    sentence: str
    group: str = ""
    owner: Callable[..., object] | None = None

    @property
    def possible(self) -> str:
        """Say which values are possible."""
        return possible(self.kind)

    @property
    def tuning(self) -> tuple[object, ...]:
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


def sections(entry: Callable[..., object]) -> Mapping[str, object]:
    """Name the sections of the config that an entry takes beside its options: name -> default, REQUIRED for none."""
    every = _arguments(inspect.unwrap(entry))
    return {one.name: one.default for one in every if any(isinstance(m, OwnSection) for m in metadata_of(one.kind))}


@cache
def _schema(entry: Callable[..., object]) -> Mapping[str, Option]:
    found: dict[str, Option] = {}
    for one in _arguments(entry):
        if any(isinstance(marker, Told | OwnSection) for marker in metadata_of(one.kind)):
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
    """Read the keyword-only arguments of an entry, a group of options as one."""
    sentences = _sentences(inspect.getdoc(entry) or "")
    hints = get_type_hints(entry.__init__ if inspect.isclass(entry) else entry, include_extras=True)
    parameters = [p for p in inspect.signature(entry).parameters.values() if p.kind is inspect.Parameter.KEYWORD_ONLY]
    return [Option(p.name, hints[p.name], p.default, sentences.get(p.name, "")) for p in parameters]


def completed(
    entry: Callable[..., object], given: Mapping[str, Any], where: str, *, name: str = "", without: Container[str] = ()
) -> dict[str, Any]:
    """Complete `given` with the defaults of an entry's options, refusing what it does not take; values pass unchecked.

    Args:
        entry: whose options are completed.
        given: name -> value.
        where: the config section, for the message ("loss").
        name: of the entry, for the message; that of the function by default.
        without: options that are not for the user to choose.

    Returns:
        Every option of the entry, in its order.

    Raises:
        InputError: an option that the entry does not take, or a missing one.
    """
    known = {key: option for key, option in schema(entry).items() if key not in without}
    name = name or getattr(entry, "__name__", str(entry)).strip("_").replace("_", "-")
    for key in given:
        if key not in known:
            raise InputError(f"{where}.{key}: {name} takes no such option; {_instead(str(key), known)}")
    complete = {key: given.get(key, option.default) for key, option in known.items()}
    for key, value in complete.items():
        if value is REQUIRED:
            raise InputError(f"{where}.{key}: {name} needs this option; {known[key].possible} is possible")
    return complete


def arguments(entry: Callable[..., object], values: Mapping[str, Any]) -> dict[str, Any]:
    """Turn options and sections into the keyword arguments of an entry: options of a group become one dataclass."""
    found: dict[str, Any] = {name: values[name] for name in sections(entry) if name in values}
    groups: dict[str, tuple[Callable[..., object], dict[str, Any]]] = {}
    for name, option in schema(entry).items():
        if name not in values:
            continue
        if option.owner is None:
            found[name] = values[name]
        else:
            groups.setdefault(option.group, (option.owner, {}))[1][name] = values[name]
    return found | {group: owner(**own) for group, (owner, own) in groups.items()}


def _instead(name: str, known: Mapping[str, object]) -> str:
    if not known:
        return "it takes none"
    return f"did you mean '{nearest(name, known)}'?"


def _sentences(documentation: str) -> dict[str, str]:
    """Read the sections `Args` and `Attributes` of a docstring: name -> text, as one line."""
    found: dict[str, str] = {}
    for block in re.findall(r"^(?:Args|Attributes):\n((?:[ ]{4}.*\n?|\n)+)", documentation, re.MULTILINE):
        for name, text in re.findall(r"^ {4}(\w+): ((?:.*\n?)(?:^ {8}.*\n?)*)", block, re.MULTILINE):
            found[name] = " ".join(text.split())
    return found
