"""Options that set configuration keys, shared by all commands that train."""

from collections.abc import Callable
from typing import Any

import click

GENERAL, TRAINING, PROXY = (
    "aadml.configuration.config:Common",
    "aadml.methods.training.settings:Training",
    "aadml.proxies.correlation:GraphOptions",
)
"""Classes that declare the keys that have their own option."""


class KeyFlag(click.Option):
    """Option that sets one configuration key; its help text is read from the declaration of the key.

    Args:
        flag: name of the option, such as `--epochs`.
        key: configuration key, such as `training.epochs`.
        declared: "module:class" that declares the key.
        options: arguments of `click.Option`.
    """

    def __init__(self, flag: list[str], *, key: str, declared: str, **options: Any) -> None:
        super().__init__(flag, **options)
        self.key, self.declared = key, declared

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the option and its help text."""
        from aadml.feature_extraction.ground.import_paths import documentation
        from aadml.feature_extraction.ground.options import sentences

        sentence = sentences(documentation(self.declared))[self.key.rpartition(".")[2]]
        self.help = f"{sentence[:1].upper()}{sentence[1:]}" + (f"  [{self.key}]" if "." in self.key else "")
        return super().get_help_record(ctx)


def key_flag(flag: str, key: str, declared: str, kind: type | None = None) -> Callable[[Any], Any]:
    """Add an option that sets a configuration key to a command."""
    return click.option(flag, cls=KeyFlag, key=key, declared=declared, type=kind)


set_option = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set a configuration key, for example proxy.k=5; see `aadml list sections` and `aadml list methods NAME`.",
)


def config_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--config` and `--set` to a command."""
    return click.option("--config", help="YAML file, or a preset of `aadml list configs`.")(set_option(command))
