"""Output of commands on stdout and stderr. Texts from files cannot control the terminal."""

import json
import sys
from pathlib import Path

import click

from aadml.feature_extraction.ground.terminal import escaped


def echo(*lines: object, err: bool = False, bold: bool = False) -> None:
    """Print lines, with control characters escaped; a line end inside a line is escaped as well.

    Args:
        lines: lines to print.
        err: whether to print on stderr.
        bold: whether to print in bold on a terminal.
    """
    text = "\n".join(escaped(str(line)) for line in lines)
    click.echo(click.style(text, bold=True) if bold else text, err=err)


def echo_path(path: str | Path) -> None:
    """Print a path. On a terminal, control characters are escaped.

    If stdout is not a terminal, the original bytes are printed for a program to read.
    """
    click.echo(escaped(str(path)) if sys.stdout.isatty() else path, color=True)  # nothing is stripped


def echo_json(content: object, *, indent: int | None = 2, ensure_ascii: bool = True) -> None:
    """Print content as JSON."""
    click.echo(json.dumps(content, indent=indent, ensure_ascii=ensure_ascii))
