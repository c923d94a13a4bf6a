"""`aadml sample-data`: render the sample clips."""

import csv

import click


@click.command(name="sample-data")
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False))
@click.option("--clips", default=200, show_default=True, help="Number of clips, shared equally among the ten events.")
@click.option("--seconds", default=2.0, show_default=True, help="Length of a clip, in seconds.")
@click.option("--seed", default=0, show_default=True, help="Random seed; the same seed renders the same clips.")
@click.option("--workers", type=click.IntRange(min=1), help="Worker processes.  [default: one per core]")
def command(folder: str, clips: int, seconds: float, seed: int, workers: int | None) -> None:
    """Render sample clips of ten everyday events (MP4 files with sound) and their manifest into DIR.

    The last line printed is the path of the manifest, for `aadml extract`.
    """
    import aadml
    from aadml.cli.progress import continues
    from aadml.feature_extraction.ground.progress_bar import Bar

    with continues(), Bar(clips, "clip", "rendering") as bar:
        manifest = aadml.sample_data(
            folder, clips=clips, seconds=seconds, seed=seed, workers=workers,
            progress=lambda more: bar.show(bar.done + more),
        )  # fmt: skip
    with manifest.open(encoding="utf-8", newline="") as file:
        splits = [row["split"] for row in csv.DictReader(file)]
    parts = ", ".join(f"{splits.count(split)} {split}" for split in ("train", "valid", "test"))
    click.echo(f"{clips} clips of {seconds:g} s, 10 events, {parts}", err=True)
    click.echo(manifest)
