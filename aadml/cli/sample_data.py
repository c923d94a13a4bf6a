"""Render the sample clips (real MP4 files with sound) and their manifest."""

import csv

import click

from aadml.cli.settings import flags_of
from aadml.cli.terminal import echo, echo_path

_flag = flags_of("aadml.data.sample_clips:sample_data")


@click.command(name="sample-data")
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False))
@_flag("--clips", default=200, show_default=True)
@_flag("--seconds", default=2.0, show_default=True)
@_flag("--seed", default=0, show_default=True)
@_flag("--workers", type=click.IntRange(min=1))
def command(folder: str, clips: int, seconds: float, seed: int, workers: int | None) -> None:
    """Render sample clips of ten everyday events into DIR, and write a manifest of the clips.

    The clips are MP4 files with sound. The last line printed is the path of the manifest, for `aadml extract`.
    """
    import aadml
    from aadml.cli.progress import continues
    from aadml.feature_extraction.ground.progress_bar import Bar

    with continues("run the same command again"), Bar(clips, "clip", "rendering") as bar:
        manifest = aadml.sample_data(
            folder, clips=clips, seconds=seconds, seed=seed, workers=workers,
            progress=lambda more: bar.show(bar.done + more),
        )  # fmt: skip
    with manifest.open(encoding="utf-8", newline="") as file:
        splits = [row["split"] for row in csv.DictReader(file)]
    parts = ", ".join(f"{splits.count(split)} {split}" for split in ("train", "valid", "test"))
    echo(f"{clips} clips of {seconds:g} s, 10 events, {parts}", err=True)
    echo_path(manifest)
