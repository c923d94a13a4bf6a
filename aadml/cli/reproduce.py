"""Reproduce a paper's tables and figures on its data sets, beside the published values."""

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aadml.cli.progress import note
from aadml.cli.settings import flags_of, set_option
from aadml.cli.sweeps import MAX_EPOCHS, command_line, machine_options, show, work
from aadml.cli.trust import trust_option

if TYPE_CHECKING:
    from aadml.studies.forecast import Forecast

_flag = flags_of("aadml.papers.reproduction:reproduce")


@click.command()
@click.argument("paper", type=click.Choice(["paper", "mei", "3cmlf", "xie"]))
@_flag("--vegas", type=click.Path(), metavar="F.h5")
@_flag("--ave", type=click.Path(), metavar="G.h5")
@_flag("--audiocaps", type=click.Path(), metavar="FOLDER")
@_flag("--clotho", type=click.Path(), metavar="FOLDER")
@_flag("--quick", is_flag=True)
@_flag("--only", metavar="PARTS")
@_flag("--seeds", type=click.IntRange(min=1))
@set_option
@MAX_EPOCHS
@machine_options
@click.option("--yes", is_flag=True, help="Start a job of more than an hour without confirmation.")
@click.option("--json", "as_json", is_flag=True, help="Print the tables as JSON.")
@_flag("-o", "--output", type=click.Path(path_type=Path))
@trust_option
def command(as_json: bool, yes: bool, **options: Any) -> None:
    """Train the methods of a PAPER's tables and figures, and show the results beside the published values.

    PAPER is 'paper' for Tables 1 to 3 and Figures 3 to 5 of AADML, which are computed from VEGAS and AVE. The
    audio-text papers are 'mei', '3cmlf' and 'xie'. A time estimate is printed first. Run the same command again to
    continue an interrupted job. Rows of AADML's tables are scored under the protocol "inductive", and under each
    protocol "legacy:NAME", which repeats a leak of published code. The output folder contains the runs, a CSV file
    per table and figure, and a page. The drawings on the page need the extra `plot`.
    """
    import aadml

    result = aadml.reproduce(**options, command=command_line(), work=work, confirm=partial(_ask, yes=yes), on_note=note)
    show(result, as_json=as_json)


def _ask(forecast: "Forecast", *, yes: bool) -> None:
    """Request confirmation of a long job unless `yes`.

    Raises:
        InputError: confirmation is needed, and stdin is not a terminal.
        Abort: the user declines.
    """
    from aadml.feature_extraction.ground.errors import InputError
    from aadml.studies.forecast import WORTH_ASKING, in_words

    if yes or forecast.wall < WORTH_ASKING:
        return
    if not sys.stdin.isatty():
        raise InputError(
            f"reproduce takes about {in_words(forecast.wall)} and needs a confirmation, but stdin is not a terminal; "
            "pass --yes to start, optionally with --quick, --only or --shard I/N for fewer runs"
        )
    click.confirm(f"aadml: this takes about {in_words(forecast.wall)}; start?", abort=True, err=True)
