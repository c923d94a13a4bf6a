"""`--trust-code`, shared by all commands that read files which can name code."""

from collections.abc import Callable
from typing import Any

import click

from aadml.feature_extraction.ground.consent import trusting


def _trust(context: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        context.with_resource(trusting())


def trust_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--trust-code` to a command."""
    words = "Import code outside aadml that a file names as module:name. Read that code first."
    return click.option("--trust-code", is_flag=True, expose_value=False, callback=_trust, help=words)(command)
