"""`aadml embed`: embeddings for use elsewhere."""

from pathlib import Path

import click


@click.command("embed")
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("features", type=click.Path(path_type=Path))
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="HDF5 file to write.")
def command(run: Path, features: Path, output: Path) -> None:
    """Embed every clip of FEATURES with the trained RUN, one item of one modality at a time."""
    from aadml.runs.embed import embed_file

    count, similarity = embed_file(run, features, output)
    click.echo(f"{output}: {count} clips, compared by {similarity}")
