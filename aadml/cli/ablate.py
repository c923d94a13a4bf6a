"""`aadml ablate`: a grid of runs over config keys and seeds."""

from pathlib import Path
from typing import Any

import click

from aadml.cli.settings import GENERAL, TRAINING, config_options, key_flag
from aadml.cli.sweeps import sweep_options
from aadml.cli.trust import trust_option


@click.command(short_help="Run a grid over config keys and seeds; table, curves with spread, significance.")
@click.option(
    "--over",
    multiple=True,
    required=True,
    metavar="KEY=VALUES",
    help="A config key and its values: proxy.k=1..7, loss=aa-triplet,aa-contrastive. Repeat to form a grid.",
)
@key_flag("--data", "data", GENERAL)
@click.option("--method", help="A method of `aadml list methods`; its configs/METHOD.yaml is the starting point.")
@config_options
@key_flag("--epochs", "training.epochs", TRAINING, int)
@click.option(
    "--baseline",
    multiple=True,
    metavar="KEY=VALUE",
    help="Compare each cell with itself after this change; 'none' for no comparison.  [default: itself without "
    "anchor-aware proxy, or the first cell]",
)
@sweep_options
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Folder.  [default: ablations/KEYS-HASH]")
@trust_option
def command(as_json: bool, **options: Any) -> None:
    """Run every combination of the values of --over with every seed, and test which differences are significant.

    Running the same command again continues where it stopped; finished runs are kept. A failed run does not stop the
    others (exit code 1). The folder holds the runs, results.md/.csv/.tex, curves as SVG, and report.html.
    """
    from aadml.cli.progress import note
    from aadml.cli.sweeps import command_line, show, work
    from aadml.studies.ablation import ablate

    show(ablate(**options, command=command_line(), work=work, on_note=note), as_json=as_json)
