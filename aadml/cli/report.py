"""`aadml report`: the page of a run."""

from pathlib import Path
from typing import Any

import click

from aadml.cli.feature_options import other_features_option
from aadml.cli.run_path import RunPath
from aadml.cli.trust import trust_option


@click.command("report")
@click.argument("runs", nargs=-1, required=True, type=RunPath())
@click.option(
    "--data", help="Data whose test clips are reported, instead of the data of the run. Required for a model folder."
)
@click.option("--media", type=click.Path(path_type=Path), help="Manifest of the clips, for pictures and players.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Page to write.  [default: report.html in the run]"
)
@other_features_option
@click.option("--queries", type=int, metavar="N", help="Use N random queries of each direction instead of all queries.")
@trust_option
def command(runs: tuple[Path, ...], output: Path | None, **options: Any) -> None:
    """Write one self-contained HTML page about each of RUNS: curves, classes, map of the embeddings, queries."""
    import aadml
    from aadml.cli.progress import note

    if output is not None and len(runs) > 1:
        raise click.UsageError(
            f"--output is the path of one page, but {len(runs)} runs were given; pass one run, or omit --output"
        )
    for run in runs:
        click.echo(aadml.report(run, output=output, on_note=note, **options))
