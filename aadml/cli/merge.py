"""Join the shards of an extraction job, after a check that no shard is missing."""

import click

from aadml.cli.progress import note_without_features
from aadml.cli.terminal import echo, echo_json


@click.command()
@click.argument("shards", nargs=-1, type=click.Path(), metavar="[F.0-of-N.h5 F.1-of-N.h5 ...]")
@click.option("-o", "--output", required=True, type=click.Path(), metavar="F.h5", help="Feature file to write.")
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")
def command(shards: tuple[str, ...], output: str, as_json: bool) -> None:
    """Merge all shards of an extraction job, after checking that the shards are complete and match.

    By default, the shards are the files F.I-of-N.h5 beside F.h5, for I from 0 to N-1. The exit status is 1 if a
    clip of the job failed.
    """
    import aadml

    merged = aadml.merge(shards, output)
    failed = len(merged.failures)
    if as_json:
        echo_json({"path": output if merged.clips else None, "ok": merged.clips, "failed": failed}, indent=None)
    else:
        kinds = ", ".join(f"{name} {dimension}-d" for name, dimension in merged.dimensions.items())
        written = f", {kinds} -> {output}" if merged.clips else ""
        echo(f"{merged.clips:,} clips of {merged.shards} shards, {failed:,} failed{written}")
        if failed:
            echo(f"failed clips are listed in {output}.failures.csv")
    if not merged.clips:
        note_without_features(output)
    if failed:
        raise click.exceptions.Exit(1)
