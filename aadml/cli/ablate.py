"""Train a grid over config keys and seeds, and test which differences are significant."""

from pathlib import Path
from typing import Any

import click

from aadml.cli.progress import note
from aadml.cli.settings import config_options, flags_of, key_flag
from aadml.cli.sweeps import command_line, show, sweep_options, work
from aadml.cli.trust import trust_option

_flag = flags_of("aadml.studies.ablation:ablate")


@click.command()
@_flag("--over", multiple=True, required=True, metavar="KEY=VALUES")
@key_flag("data")
@_flag("--method")
@config_options
@_flag("--max-epochs", type=click.IntRange(min=1))
@_flag("--baseline", multiple=True, metavar="KEY=VALUE")
@sweep_options
@_flag("-o", "--output", type=click.Path(path_type=Path))
@trust_option
def command(as_json: bool, **options: Any) -> None:
    """Train every combination of the values of --over with every seed, and compare each combination with a baseline.

    The differences are tested for significance. Run the same command again to continue an interrupted ablation.
    Finished runs are kept. After a failed run, the other runs are still trained, and the exit status is 1. The output
    folder contains the runs, results.md/.csv/.tex and report.html. The figures (SVG) need the extra `plot`.
    """
    import aadml

    show(aadml.ablate(**options, command=command_line(), work=work, on_note=note), as_json=as_json)
