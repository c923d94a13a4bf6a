"""`aadml compare`: the tables of the papers on any feature file."""

from pathlib import Path
from typing import Any

import click

from aadml.cli.progress import note
from aadml.cli.settings import config_options, key_flag
from aadml.cli.sweeps import MAX_EPOCHS, command_line, show, sweep_options, work
from aadml.cli.trust import trust_option


@click.command()
@key_flag("data")
@key_flag("modalities")
@click.option("--methods", help="'all', or methods and presets separated by commas; each uses its own config.")
@click.option("--losses", help="'all', or losses separated by commas; each is trained with and without proxies.")
@config_options
@MAX_EPOCHS
@click.option(
    "--controls/--no-controls",
    "with_controls",
    default=True,
    help="Add the control rows of every anchor-aware row.  [default: on]",
)
@click.option(
    "--rivals",
    "with_rivals",
    is_flag=True,
    help="Add the alternatives to every anchor-aware row: cross-batch memory on the same bank, class means, the "
    "uniform mean of the neighbors, an affine map of the anchor.",
)
@click.option("--baseline", help="Row that all other rows are compared with.  [default: aadml, or the first row]")
@click.option(
    "--trials",
    default=1,
    show_default=True,
    type=click.IntRange(min=1),
    help="Number of trials per row over the `tuning` section of its config; validation clips select the best trial.",
)
@sweep_options
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Output folder.  [default: comparisons/NAME-HASH]"
)
@trust_option
def command(as_json: bool, **options: Any) -> None:
    """Run rows of the papers' tables with several seeds on a feature file, and test which differences are significant.

    An anchor-aware row has control rows: the loss without proxy, and the proxy over random neighbors of the class.
    Configs with a label loss add half the metric weight without proxy, and no metric loss. Run the same command again
    to continue an interrupted comparison. After a failed row, the other rows are still trained, and the exit status
    is 1.
    """
    import aadml

    show(aadml.compare(**options, command=command_line(), work=work, on_note=note), as_json=as_json)
