"""Build or update a searchable index of clips."""

from pathlib import Path
from typing import Any

import click

from aadml.cli.feature_options import extractor_settings_option, other_features_option
from aadml.cli.progress import JobBar, continues, note
from aadml.cli.settings import flags_of
from aadml.cli.terminal import echo, echo_json
from aadml.cli.trust import trust_option
from aadml.feature_extraction.ground.errors import one_line

_flag = flags_of("aadml.search.build_index:build")


@click.command("index")
@click.argument("source", type=click.Path())
@_flag("-o", "--output", required=True, type=click.Path(), metavar="INDEX")
@_flag("--model", type=click.Path(path_type=Path), metavar="RUN")
@_flag("--audio", metavar="NAME")
@_flag("--visual", metavar="NAME")
@extractor_settings_option
@_flag("--weights", metavar="auto|FILE|untrained")
@_flag("--media", type=click.Path(), metavar="MANIFEST")
@_flag("--moments", is_flag=True)
@other_features_option
@_flag("--workers", type=click.IntRange(min=1), metavar="N")
@_flag("--calibrate", type=click.Path(), metavar="F.h5")
@_flag("--precision", type=float, metavar="SHARE")
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")
@trust_option
def command(source: str, output: str, as_json: bool, **options: Any) -> None:
    """Build an index of SOURCE: a feature file, a manifest, or a folder of sounds, pictures and videos.

    Run the same command again to update the index, or to continue a killed job. A clip is embedded again only if
    its content or columns have changed. Searches read the previous state until the job ends. With --model, audio,
    visual and text of the model search each other; other modalities are not indexed. Without --model, a modality is
    searched only with queries of the same modality, unless one pretrained model (hf:MODEL) computes both. The exit
    status is 1 if a file could not be read.
    """
    import aadml

    with continues(), JobBar() as bar:
        changes = aadml.index(source, output, progress=bar.show, on_note=note, **options)
    _print(changes, output, as_json)
    if changes.failures:
        raise click.exceptions.Exit(1)


def _print(changes: Any, output: str, as_json: bool) -> None:
    if as_json:
        counts = {"items": changes.items, "new": changes.new, "changed": changes.changed, "removed": changes.removed}
        failed = [{"id": clip.id, "media": clip.media, "reason": clip.reason} for clip in changes.failures]
        echo_json({"path": output, **counts, "vectors": dict(changes.vectors), "failed": failed}, indent=None)
        return
    for failure in changes.failures[:10]:
        reason = f"{failure.reason}, {failure.detail}"
        message = f"'{failure.media}' cannot be read as {failure.modality} ({reason}); restore or replace the file"
        note(one_line(message))
    if len(changes.failures) > 10:
        note(f"the number of further unreadable files is {len(changes.failures) - 10}; pass --json to list all")
    vectors = ", ".join(f"{count:,} {modality}" for modality, count in changes.vectors.items())
    echo(
        f"{output}: {changes.items:,} clips ({vectors}): {changes.new:,} new, {changes.changed:,} changed, "
        f"{changes.removed:,} removed"
    )
