"""Sections of a config that name an entry of a table."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, TypeVar

from aadml.feature_extraction.ground.json_values import JsonObject
from aadml.feature_extraction.ground.option_types import OwnSection
from aadml.feature_extraction.ground.options import completed, keywords, made, schema

T = TypeVar("T")
Section = Annotated[JsonObject | str, OwnSection()]
"""A section as it is written: a name, or a mapping of `name` and options."""


@dataclass(frozen=True)
class Named:
    """A section as it is read.

    Attributes:
        name: of an entry of a table.
        options: of the entry, and those that all entries of the table share.
    """

    name: str
    options: JsonObject = field(default_factory=dict)

    def keywords(self, entry: Callable[..., object], where: str, *shared: Callable[..., object]) -> dict[str, object]:
        """Give the keyword arguments of `entry`: what stands here, and its defaults.

        Args:
            entry: a function or class.
            where: the section, for messages.
            shared: what else the section holds options of.

        Raises:
            InputError: an option that neither takes.
        """
        others = {key for one in shared for key in schema(one)}
        own = {key: value for key, value in self.options.items() if key not in others}
        return keywords(entry, completed(entry, own, where, name=self.name))

    def shared(self, group: Callable[..., T]) -> T:
        """Build what the options of the section are of that all entries of the table share."""
        return made(group, self.options)


def named(section: Section) -> Named:
    """Read a section that is a name, or a mapping with one."""
    if isinstance(section, str):
        return Named(section)
    return Named(str(section["name"]), {key: value for key, value in section.items() if key != "name"})
