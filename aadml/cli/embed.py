"""Write the embeddings of a feature file."""

from pathlib import Path

import click

from aadml.cli.feature_options import other_features_option
from aadml.cli.terminal import echo
from aadml.cli.trust import trust_option


@click.command("embed")
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("features", type=click.Path())
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="HDF5 file to write.")
@other_features_option
@trust_option
def command(run: Path, features: str, output: Path, allow_other_features: bool) -> None:
    """Embed every clip of FEATURES with RUN (a run or a model folder), one item of one modality at a time."""
    import aadml
    from aadml.cli.progress import note

    count, similarity = aadml.embed(run, features, output, allow_other_features=allow_other_features, on_note=note)
    echo(f"{output}: {count} clips, compared by {similarity}")
