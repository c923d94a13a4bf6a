"""`aadml index`: a searchable index of clips."""

from typing import Any

import click

from aadml.cli.run_path import RunPath
from aadml.cli.trust import trust_option


@click.command("index", short_help="Build or update a searchable index of clips.")
@click.argument("source", type=click.Path())
@click.option("-o", "--output", required=True, type=click.Path(), metavar="INDEX", help="Index file to write.")
@click.option(
    "--model",
    type=RunPath(),
    metavar="RUN",
    help="Run or model folder; without it, features are indexed as they are.",
)
@click.option(
    "--audio", metavar="NAME", help="Without a model: audio extractor.  [default: log-mel, if no extractor is named]"
)
@click.option(
    "--visual",
    metavar="NAME",
    help="Without a model: visual extractor.  [default: hog-color, if no extractor is named]",
)
@click.option("--set", "settings", multiple=True, metavar="MODALITY.KEY=VALUE", help="Set an option of an extractor.")
@click.option("--weights", metavar="auto|FILE|untrained", help="Weights of the extractors that need weights.")
@click.option("--media", type=click.Path(), metavar="MANIFEST", help="Manifest with the media of a feature file.")
@click.option("--moments", is_flag=True, help="Store features over time, so that a hit has its best moment.")
@click.option(
    "--allow-other-features", is_flag=True, help="Accept features from another extractor than the model was trained on."
)
@click.option("--workers", type=click.IntRange(min=1), metavar="N", help="Decoding processes.  [default: processors]")
@click.option(
    "--calibrate",
    type=click.Path(),
    metavar="F.h5",
    help="Fit probabilities on the validation clips of a feature file.  [default: the clips of SOURCE]",
)
@click.option(
    "--precision",
    default=0.9,
    show_default=True,
    help="Share of best hits above the 'nothing fits' threshold that are relevant.",
)
@click.option(
    "--approximate",
    type=float,
    metavar="RECALL",
    help="Approximate search of 100,000 clips or more, with this recall of the ten best hits.  [default: exact]",
)
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")
@trust_option
def command(
    source: str,
    output: str,
    model: str | None,
    audio: str | None,
    visual: str | None,
    settings: tuple[str, ...],
    weights: str | None,
    media: str | None,
    moments: bool,
    allow_other_features: bool,
    workers: int | None,
    calibrate: str | None,
    precision: float,
    approximate: float | None,
    as_json: bool,
) -> None:
    """Build an index of SOURCE: a folder of sounds, pictures and videos, a manifest, or a feature file.

    Run the same command again to update the index, or to continue a killed job. New, changed and removed clips are
    recognized by their content. Searches read the previous state until the job ends. With --model, every modality of
    the model can be searched with every other modality; without it, only with itself. Exit status 1 if a file could
    not be read.
    """
    import aadml
    from aadml.cli.extract import read_settings
    from aadml.cli.progress import JobBar, continues, note

    with continues(), JobBar() as bar:
        changes = aadml.index(
            source, output, model=model, audio=audio, visual=visual, options=read_settings(settings), weights=weights,
            media=media, moments=moments, allow_other_features=allow_other_features, workers=workers,
            calibrate=calibrate, precision=precision, approximate=approximate, progress=bar.show, on_note=note,
        )  # fmt: skip
    _print(changes, output, as_json)
    if changes.failures:
        raise click.exceptions.Exit(1)


def _print(changes: Any, output: str, as_json: bool) -> None:
    if as_json:
        import json

        counts = {"items": changes.items, "new": changes.new, "changed": changes.changed, "removed": changes.removed}
        failed = [{"id": clip.id, "media": clip.media, "reason": clip.reason} for clip in changes.failures]
        click.echo(json.dumps({"path": output, **counts, "vectors": dict(changes.vectors), "failed": failed}))
        return
    for failure in changes.failures[:10]:
        click.echo(f"aadml: {failure.media}: {failure.modality}: {failure.reason}, {failure.detail}", err=True)
    if len(changes.failures) > 10:
        click.echo(f"aadml: {len(changes.failures) - 10} more files could not be read", err=True)
    vectors = ", ".join(f"{count:,} {modality}" for modality, count in changes.vectors.items())
    click.echo(
        f"{output}: {changes.items:,} clips ({vectors}): {changes.new:,} new, {changes.changed:,} changed, "
        f"{changes.removed:,} removed"
    )
