"""Sections of a config that choose an entry of a registry, with all of its options."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, is_dataclass, replace
from functools import partial
from types import SimpleNamespace
from typing import Any, ClassVar, TypeGuard, TypeVar

from aadml.feature_extraction.ground.json_values import Json
from aadml.feature_extraction.ground.option_types import OwnSection
from aadml.feature_extraction.ground.options import completed, keywords, made, schema, without_removed
from aadml.feature_extraction.ground.registry import Registry, lookup
from aadml.feature_extraction.ground.validation import checked_options
from aadml.objective.left_out import LeftOut, is_left_out

T = TypeVar("T")
S = TypeVar("S", bound="EntrySection")


class OptionValues(SimpleNamespace):
    """Options as attributes, in the order of a schema; a method's options include its sections."""

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{name} cannot be set, as options are immutable; build new options instead")

    def __contains__(self, name: str) -> bool:
        return name in vars(self)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """Return pydantic's schema for a JSON object."""
        from pydantic_core import core_schema

        return core_schema.no_info_after_validator_function(lambda values: cls(**values), core_schema.dict_schema())

    def plain(self) -> dict[str, Json]:
        """Return the options as plain values, as they are written in files."""
        return {name: plain(value) for name, value in vars(self).items()}


@dataclass(frozen=True)
class EntrySection(OwnSection):
    """Entry of a registry with its options.

    Attributes:
        name: name of the entry.
        options: options of the entry, and options that all entries of the registry share. All are set, unless the entry
            is code from outside aadml that a file names. Such a section stays as it is in the file until the entry is
            built.
        key: key of the section in a config.
        table: registry of the entries.
        groups: dataclasses of the options that all entries share.
    """

    name: str
    options: OptionValues
    key: ClassVar[str]
    table: ClassVar[Registry[Any]]
    groups: ClassVar[tuple[Callable[..., object], ...]] = ()

    @classmethod
    def of(cls: type[S], name: str, **options: object) -> S:
        """Build the section of an entry from its name; omitted options have their defaults.

        Raises:
            InputError: the name or an option is unknown.
        """
        return cls(name, OptionValues(**options)).completed()

    @property
    def is_outside(self) -> bool:
        """True if the entry is code from outside aadml."""
        return self.table.is_outside(self.name)

    @property
    def entry(self) -> Callable[..., Any]:
        """Function or class of the entry."""
        entry: Callable[..., Any] = lookup(self.table, self.name, self.key.replace("_", " "))
        return entry

    def completed(self: S, *, check: bool = False) -> S:
        """Return the section with the defaults of all omitted options; `check` also checks the values."""
        entry, options, complete = self.entry, dict(vars(self.options)), checked_options if check else completed
        parts = [
            complete(group, {key: options.pop(key) for key in schema(group) if key in options}, self.key)
            for group in self.groups
        ]
        parts.append(complete(entry, options, self.key, name=self.name))
        return replace(self, options=OptionValues(**{key: value for part in parts for key, value in part.items()}))

    def shared(self, group: Callable[..., T]) -> T:
        """Build one of the `groups` from the options."""
        return made(group, vars(self.options))

    def bound(self) -> Callable[..., Any]:
        """Return the entry, bound to its options."""
        options = (self.completed() if self.is_outside else self).options
        return partial(self.entry, **keywords(self.entry, vars(options)))

    def build(self) -> Any:
        """Return the bound entry; a loaded model leaves out code from outside aadml."""
        return self.part(self.bound)

    def part(self, build: Callable[[], Any]) -> Any:
        """Return the result of `build`; a loaded model leaves out code from outside aadml."""
        return LeftOut(build) if is_left_out(self.table, self.name) else build()


def plain(value: Any) -> Json:
    """Return an option or a section as plain values, as they are written in files."""
    if isinstance(value, EntrySection):
        return {"name": value.name, **value.options.plain()}
    json: Json = dict(vars(value)) if is_dataclass(value) else value
    return json


def is_named(kind: object) -> TypeGuard[type[EntrySection]]:
    """Return whether sections of a type choose an entry of a registry."""
    return inspect.isclass(kind) and issubclass(kind, EntrySection)


def stored_section(key: str, kind: Any, value: Any) -> Any:
    """Build a section from a file that aadml wrote; code from outside aadml is not imported.

    Args:
        key: name of the section.
        kind: type of the section.
        value: plain values.
    """
    if not is_named(kind):
        return kind(**without_removed(kind, value, key)) if isinstance(value, Mapping) else value
    section = kind(value["name"], OptionValues(**{key: option for key, option in value.items() if key != "name"}))
    return section if section.is_outside else section.completed()
