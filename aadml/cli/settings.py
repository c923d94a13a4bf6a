"""The flags that make a config, shared by all commands that train."""

from collections.abc import Callable
from typing import Any

import click

GENERAL, TRAINING, PROXY = (
    "aadml.configuration.config:Common",
    "aadml.methods.training.settings:Training",
    "aadml.proxies.correlation:GraphOptions",
)
"""Where the keys that have a flag of their own are declared."""


class KeyFlag(click.Option):
    """A flag that sets one key of the config; its help is what the key's declaration says, read when it is asked for.

    Args:
        flag: as `--epochs`.
        key: of the config, as `training.epochs`.
        declared: the place of the class that declares the key.
        options: of `click.Option`.
    """

    def __init__(self, flag: list[str], *, key: str, declared: str, **options: Any) -> None:
        super().__init__(flag, **options)
        self.key, self.declared = key, declared

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Give the flag and its help."""
        from aadml.feature_extraction.ground.import_paths import documentation
        from aadml.feature_extraction.ground.options import sentences

        sentence = sentences(documentation(self.declared))[self.key.rpartition(".")[2]]
        self.help = f"{sentence[:1].upper()}{sentence[1:]}" + (f"  [{self.key}]" if "." in self.key else "")
        return super().get_help_record(ctx)


def key_flag(flag: str, key: str, declared: str, kind: type | None = None) -> Callable[[Any], Any]:
    """Add a flag that sets a key of the config to a command."""
    return click.option(flag, cls=KeyFlag, key=key, declared=declared, type=kind)


def config_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--config` and `--set` to a command."""
    command = click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="KEY=VALUE",
        help="Any key of the config, for example proxy.k=5; see `aadml list sections` and `aadml list methods NAME`.",
    )(command)
    return click.option("--config", help="A YAML file, or a shipped one of `aadml list configs`.")(command)
