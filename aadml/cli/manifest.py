"""`aadml manifest`: list the media of a data set for extraction."""

from typing import Any

import click


@click.command(name="manifest")
@click.argument("dataset", metavar="DATASET")
@click.argument("source", metavar="DIR", type=click.Path())
@click.option("-o", "--output", required=True, type=click.Path(dir_okay=False), help="The manifest to write.")
@click.option("--media", type=click.Path(), help="ave: folder of the videos.  [default: DIR/AVE]")
@click.option("--classes", type=int, help="ave: 15 (the retrieval papers, default) or 28 (all).")
@click.option("--clock-limit", help="ave: how many clips of Clock are kept, or none.  [default: 100]")
@click.option("--folds", type=click.Path(), help="vegas: folder with one text file of ids per fold.")
@click.option("--test-fold", type=click.IntRange(min=1), help="vegas: the fold used for testing.  [default: the last]")
@click.option("--valid", type=float, help="class-folders: share of each class used for validation.  [default: 0.1]")
@click.option("--test", type=float, help="class-folders: share of each class used for testing.  [default: 0.2]")
@click.option("--seed", type=click.IntRange(min=0), help="Random seed of every split.  [default: 0]")
@click.option("--skip-missing", is_flag=True, help="Skip clips whose media file is missing.")
def command(dataset: str, source: str, output: str, skip_missing: bool, **given: Any) -> None:
    """List the media of DATASET (ave, vegas or class-folders) in DIR as a manifest for `aadml extract`.

    What is missing, repeated or shared between splits is reported on stderr, with the SHA-256 of what was read.
    """
    from aadml.data.manifests.making import manifest

    manifest(
        dataset, source, output, skip_missing=skip_missing, on_note=lambda line: click.echo(line, err=True), **given
    )
    click.echo(output)
