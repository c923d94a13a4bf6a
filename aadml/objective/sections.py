"""Config sections that choose a registry entry and contain all options of the entry."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, TypeGuard, TypeVar

from aadml.feature_extraction.ground.option_types import OwnSection
from aadml.feature_extraction.ground.options import (
    OptionValues,
    completed,
    keywords,
    made,
    schema,
    without,
    without_removed,
)
from aadml.feature_extraction.ground.registry import Registry, lookup
from aadml.feature_extraction.ground.validation import checked_options
from aadml.objective.left_out import LeftOut, is_left_out

T = TypeVar("T")
S = TypeVar("S", bound="EntrySection")


@dataclass(frozen=True)
class EntrySection(OwnSection):
    """Config section with the name of a registry entry and all options of the entry.

    Attributes:
        name: name of the entry.
        options: options of the entry, and options that all entries of the registry share. All options are set,
            except in stored sections of entries from outside aadml. The options that a stored section omits are set
            when the entry is built.
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
            InputError: the errors of `completed`.
        """
        return cls(name, OptionValues(**options)).completed()

    @property
    def is_outside(self) -> bool:
        """Whether the entry is not part of aadml: code from outside aadml, or an unknown name."""
        return not self.table.is_own(self.name)

    @property
    def entry(self) -> Callable[..., Any]:
        """Function or class of the entry."""
        entry: Callable[..., Any] = lookup(self.table, self.name, self.key.replace("_", " "))
        return entry

    def completed(self: S, *, check: bool = False) -> S:
        """Return the section with the defaults of all omitted options; `check` also checks the values.

        Raises:
            InputError: an unknown entry or option, a missing option without a default, a removed option with a value
                that is no longer possible, or an invalid value (only with `check`).
        """
        options, complete = self.options, checked_options if check else completed
        parts = []
        for group in self.groups:
            names = schema(group)
            parts.append(complete(group, without(options, vars(options).keys() - names.keys()), self.key))
            options = without(options, names)
        parts.append(complete(self.entry, options, self.key, name=self.name))
        values = {key: value for part in parts for key, value in vars(part).items()}
        return replace(self, options=OptionValues(**values))

    def shared(self, group: Callable[..., T]) -> T:
        """Build one of the `groups` from the options."""
        return made(group, self.options)

    def bound(self) -> Callable[..., Any]:
        """Return the entry, bound to its options."""
        options = (self.completed() if self.is_outside else self).options
        return partial(self.entry, **keywords(self.entry, options))

    def build(self) -> Any:
        """Return the entry, bound to its options.

        While a model is being loaded, the result for an entry from outside aadml is a `LeftOut` instead.
        """
        return self.part(self.bound)

    def plain(self) -> object:
        """Return the section as plain values, in the form of config files."""
        return {"name": self.name, **self.options.plain()}

    def part(self, build: Callable[[], Any]) -> Any:
        """Return the result of `build`.

        While a model is being loaded, the result for an entry from outside aadml is `LeftOut(build)` instead.
        """
        return LeftOut(build) if is_left_out(self.table, self.name) else build()


def is_named(kind: object) -> TypeGuard[type[EntrySection]]:
    """Return whether `kind` is a subclass of `EntrySection`."""
    return inspect.isclass(kind) and issubclass(kind, EntrySection)


def stored_section(key: str, kind: Any, value: Any) -> Any:
    """Build a section from a file written by aadml; code from outside aadml is not imported.

    The section of an entry that is not part of aadml is not checked, because its package may not be installed.

    Args:
        key: name of the section.
        kind: type of the section.
        value: plain values.

    Returns:
        The section, or `value` itself if `value` is not a mapping.

    Raises:
        InputError: an option of an entry of aadml is unknown, missing or no longer possible.
    """
    if not isinstance(value, Mapping):
        return value
    if not is_named(kind):
        return kind(**vars(without_removed(kind, OptionValues(**value), key)))
    section = kind(value["name"], without(OptionValues(**value), ("name",)))
    return section if section.is_outside else section.completed()
