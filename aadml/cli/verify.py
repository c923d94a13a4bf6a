"""`aadml verify`: is a run or a model what was written?"""

import sys
from pathlib import Path

import click


@click.command("verify")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(run: Path, as_json: bool) -> None:
    """Check every file of RUN (a run or a model folder) against its checksum, and name what is damaged.

    Exit status 1 if anything is.
    """
    from aadml.runs.verify import verify

    found = verify(run)
    if as_json:
        import json

        click.echo(json.dumps({"path": str(run), "whole": not found, "damaged": found}, indent=2))
    else:
        click.echo("\n".join(found) if found else f"{run}: every file is what was written")
    sys.exit(1 if found else 0)
