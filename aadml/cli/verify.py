"""`aadml verify`: checksums of a run or a model."""

import sys
from pathlib import Path

import click


@click.command("verify")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(run: Path, as_json: bool) -> None:
    """Check every file of RUN (a run or a model folder) against its checksum, and list the damaged ones.

    Exit status 1 if a file is damaged.
    """
    import aadml

    damaged = aadml.verify(run)
    if as_json:
        import json

        click.echo(json.dumps({"path": str(run), "whole": not damaged, "damaged": damaged}, indent=2))
    else:
        click.echo("\n".join(damaged) if damaged else f"{run}: every file matches its checksum")
    sys.exit(1 if damaged else 0)
