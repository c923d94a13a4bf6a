"""`aadml report`: a page about a run."""

from pathlib import Path
from typing import Any

import click

from aadml.cli.trust import trust_option


@click.command("report")
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--data", help="Report on the test clips of this data instead of those of the run; a model needs it.")
@click.option("--media", type=click.Path(path_type=Path), help="Manifest of the clips, for pictures and players.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="The page; by default report.html in the run.")
@click.option(
    "--allow-other-features", is_flag=True, help="Accept features from another extractor than the model was trained on."
)
@click.option(
    "--queries", type=int, metavar="N", help="Let N queries of each direction ask, drawn at random, not all of them."
)
@click.option("--query-seed", type=int, default=0, show_default=True, help="Seed of that draw.")
@trust_option
def command(runs: tuple[Path, ...], output: Path | None, **options: Any) -> None:
    """Write one self-contained HTML page about each of RUNS: curves, classes, map of the embeddings, queries."""
    from aadml.cli.progress import note
    from aadml.feature_extraction.ground.errors import InputError
    from aadml.reports.run_page import write_report

    if output is not None and len(runs) > 1:
        raise InputError("report: --output names one page; give one run, or leave it out")
    for run in runs:
        click.echo(write_report(run, output=output, on_note=note, **options))
