"""Write a self-contained HTML page about a run."""

from pathlib import Path
from typing import Any

import click

from aadml.cli.feature_options import other_features_option
from aadml.cli.settings import flags_of
from aadml.cli.terminal import echo_path
from aadml.cli.trust import trust_option

_flag = flags_of("aadml.reports.run_page:write_report")


@click.command("report")
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))
@_flag("--data")
@_flag("--media", type=click.Path(path_type=Path))
@_flag("-o", "--output", type=click.Path(path_type=Path))
@other_features_option
@_flag("--queries", type=int, metavar="N")
@trust_option
def command(runs: tuple[Path, ...], output: Path | None, **options: Any) -> None:
    """Write one self-contained HTML page about each of RUNS: curves, classes, map of the embeddings, queries."""
    import aadml
    from aadml.cli.progress import note

    if output is not None and len(runs) > 1:
        raise click.UsageError(
            f"--output is the path of one page, but {len(runs)} runs were passed; pass one run, or omit --output"
        )
    for run in runs:
        echo_path(aadml.report(run, output=output, on_note=note, **options))
