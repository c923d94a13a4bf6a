"""`aadml ablate`: a grid of runs over config keys and seeds."""

from pathlib import Path
from typing import Any

import click

from aadml.cli.progress import note
from aadml.cli.settings import config_options, key_flag
from aadml.cli.sweeps import command_line, show, sweep_options, work
from aadml.cli.trust import trust_option


@click.command()
@click.option(
    "--over",
    multiple=True,
    required=True,
    metavar="KEY=VALUES",
    help="Configuration key and its values: proxy.k=1..7, loss=aa-triplet,aa-contrastive. Repeat --over for a grid.",
)
@key_flag("data")
@click.option("--method", help="Method of `aadml list methods`, with the preset configs/METHOD.yaml.")
@config_options
@key_flag("training.epochs", int)
@click.option(
    "--baseline",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change that turns a cell into its baseline; 'none' omits the comparison.  [default: the cell without "
    "an anchor-aware proxy, or the first cell]",
)
@sweep_options
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Output folder.  [default: ablations/KEYS-HASH]")
@trust_option
def command(as_json: bool, **options: Any) -> None:
    """Train every combination of the values of --over with every seed, and test which differences are significant.

    Run the same command again to continue an interrupted ablation; finished runs are kept. After a failed run, the
    other runs are still trained, and the exit status is 1. The folder holds the runs, results.md/.csv/.tex, curves as
    SVG, and report.html.
    """
    import aadml

    show(aadml.ablate(**options, command=command_line(), work=work, on_note=note), as_json=as_json)
