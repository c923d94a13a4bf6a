"""`aadml report`: a page about a run."""

from pathlib import Path

import click


@click.command("report")
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--media", type=click.Path(path_type=Path), help="Manifest of the clips, for thumbnails and players.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="The page; by default report.html in the run.")
def command(runs: tuple[Path, ...], media: Path | None, output: Path | None) -> None:
    """Write one self-contained HTML page about each of RUNS: curves, classes, map of the embeddings, queries."""
    from aadml.reports.run_page import write_report
    from feature_extraction.ground.errors import InputError

    if output is not None and len(runs) > 1:
        raise InputError("report: --output names one page; give one run, or leave it out")
    for run in runs:
        click.echo(write_report(run, media=media, output=output))
