"""`aadml reproduce`: a paper's tables and figures from its data sets."""

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aadml.cli.settings import GENERAL, config_options, key_flag
from aadml.cli.sweeps import SHARDS
from aadml.cli.trust import trust_option

if TYPE_CHECKING:
    from aadml.studies.forecast import Forecast


@click.command(short_help="Train a paper's tables and figures on its data sets; one page beside what was published.")
@click.argument("paper", type=click.Choice(["paper", "mei", "3cmlf", "xie"]))
@click.option("--vegas", type=click.Path(), metavar="F.h5", help="VEGAS' features, in any layout.")
@click.option("--ave", type=click.Path(), metavar="G.h5", help="AVE's features, in any layout.")
@click.option("--audiocaps", type=click.Path(), metavar="FOLDER", help="AudioCaps, for the papers of audio and text.")
@click.option("--clotho", type=click.Path(), metavar="FOLDER", help="Clotho, alike.  [default: the sample clips]")
@click.option("--quick", is_flag=True, help="Shortened schedules and two seeds: the whole page in minutes.")
@click.option(
    "--only",
    metavar="PARTS",
    help="By commas: table-1, table-2, table-3, figure-3, figure-4, figure-5, clock-draw.",
)
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    help="Number of seeds per row.  [default: 5, with --quick 2]",
)
@config_options
@click.option("--max-epochs", type=click.IntRange(min=1), help="Upper limit on the training epochs of every row.")
@key_flag("--device", "device", GENERAL)
@click.option(
    "--workers",
    type=click.IntRange(min=0),
    help="Worker processes, one thread each; 0 runs in this process.  [default: one per core]",
)
@SHARDS[1]
@SHARDS[0]
@click.option("--yes", is_flag=True, help="Do not ask before a job of more than an hour.")
@click.option("--json", "as_json", is_flag=True, help="Print the tables as JSON.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Folder.  [default: reproductions/PAPER]")
@trust_option
def command(as_json: bool, yes: bool, **options: Any) -> None:
    """Train every row of a PAPER's tables and figures, and lay them out beside the published figures.

    PAPER is 'paper' (AADML: Tables 1 to 3 and Figures 3 to 5, from VEGAS and AVE), or one of audio and text: 'mei',
    '3cmlf', 'xie'; a forecast comes first. The same command again goes on where it was stopped. Rows of AADML's tables
    are scored under the honest protocol and, beside it, under each leak. The folder holds the runs, a CSV file for each
    table and figure, and a page.
    """
    from aadml.cli.progress import note
    from aadml.cli.sweeps import command_line, show, work
    from aadml.papers import reproduce

    result = reproduce(**options, command=command_line(), work=work, confirm=partial(_ask, yes=yes), on_note=note)
    show(result, as_json=as_json)


def _ask(forecast: "Forecast", *, yes: bool) -> None:
    """Ask before a long job; where nobody can answer, refuse in a line that says how to go on."""
    from aadml.feature_extraction.ground.errors import InputError
    from aadml.studies.forecast import WORTH_ASKING, in_words

    if yes or forecast.wall < WORTH_ASKING:
        return
    if not sys.stdin.isatty():
        raise InputError(
            f"reproduce: would take about {in_words(forecast.wall)}; give --yes to begin, "
            "--quick for a first look, --only for a part, or --shard I/N to divide it over machines"
        )
    click.confirm(f"aadml: this takes about {in_words(forecast.wall)}; begin?", abort=True, err=True)
