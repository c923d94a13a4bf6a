"""The flags that make a config, shared by all commands that train."""

from collections.abc import Callable
from typing import Any

import click


def config_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--config` and `--set` to a command."""
    command = click.option(
        "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Any key of the config, for example proxy.k=5."
    )(command)
    return click.option("--config", help="A YAML file, or a shipped one by name: aadml, paper, recommended, ...")(
        command
    )
