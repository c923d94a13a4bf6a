"""Check a run, a model or any file of aadml against its checksums."""

import sys
from pathlib import Path

import click

from aadml.cli.terminal import echo, echo_json


@click.command("verify")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(path: Path, as_json: bool) -> None:
    """Check PATH against its checksums, and list damaged files.

    PATH is a run or a model folder, a feature file, a file of embeddings, an index, or the folder OUTPUT.work with the
    ledger of an extraction. In a folder of runs, the newest finished run is checked. A file of another program has no
    checksums and is reported as unverified. The exit status is 1 if a file is damaged.
    """
    import aadml
    from aadml.runs.manifest import newest_run

    path = newest_run(path)
    unverified: list[str] = []
    damaged = aadml.verify(path, on_unverified=unverified.append)
    if as_json:
        content = {"path": str(path), "whole": not damaged, "verified": not unverified, "damaged": damaged}
        echo_json(content)
    else:
        echo(*(damaged or unverified or [f"{path}: every file matches its checksum"]))
    sys.exit(1 if damaged else 0)
