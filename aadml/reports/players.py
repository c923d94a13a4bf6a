"""Players and pictures of clips. A clip may occur several times in a page, but its data are stored once."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from aadml.data.reading import is_address
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.jobs.windows import without_window
from aadml.feature_extraction.manifest import read_manifest
from aadml.feature_extraction.media.inputs import REASONS
from aadml.reports.page import player
from aadml.reports.previews import SECONDS, Preview, PreviewSource, make_previews

ClipMedia = Mapping[str, PreviewSource]
"""Id of a clip or recording -> its media."""


@dataclass(frozen=True)
class Players:
    """Players of the clips of a page.

    Attributes:
        previews: id -> preview of the clip, in the order of the page.
        left_out: number of clips that have no player because the page would be too large.
    """

    previews: Mapping[str, Preview]
    left_out: int

    def show(self, clip: str) -> str:
        """Render the player or picture of a clip as HTML, or a sentence if the clip has no preview."""
        number = list(self.previews).index(clip) if clip in self.previews else 0
        return player(number, clip, self.previews.get(clip, Preview()))

    def media(self) -> list[tuple[str, str, str]]:
        """Return the media type, media and picture of each clip, for the page."""
        return [(preview.type, preview.media, preview.picture) for preview in self.previews.values()]

    def notes(self) -> list[str]:
        """Return sentences on the content of the players and on the clips without player."""
        if not self.previews:
            return []
        notes = [
            f"A player contains the first {SECONDS:g} s of a clip, with sound, at reduced quality. It plays sound and "
            "picture, but the model embeds only the named modality."
        ]
        if self.left_out:
            notes.append(f"{self.left_out} of {len(self.previews)} clips have no player: the page would be too large.")
        counts = Counter(preview.reason for preview in self.previews.values() if preview.reason)
        notes += [f"{count} of {len(self.previews)} clips could not be read completely: {REASONS[reason]}."
                  for reason, count in sorted(counts.items())]  # fmt: skip
        return notes


def find_media(manifest: Path | None, features: str | None) -> ClipMedia:
    """Return the media that a manifest lists, by id.

    Args:
        manifest: path of the manifest; None for `manifest.csv` next to the feature file.
        features: path of the feature file; None without a feature file.

    Returns:
        The media by id; empty if `manifest` is None and there is no readable `manifest.csv`.

    Raises:
        InputError: `manifest` cannot be read.
    """
    if manifest is not None:
        return _media_of(manifest)
    if features and not is_address(features):
        with suppress(InputError):
            return _media_of(Path(features).with_name("manifest.csv"))
    return {}


def _media_of(manifest: Path) -> ClipMedia:
    rows = read_manifest(manifest).rows
    return {row.id: PreviewSource(row.media["visual"], row.media["audio"], row.segment) for row in rows}


def make_players(
    media: ClipMedia, clips: Sequence[str], room: int, *, on_note: Callable[[str], None] | None = None
) -> Players:
    """Build the players of clips, as many as fit in the page.

    Args:
        media: media files of the clips.
        clips: ids in the order of the page. An id may be repeated.
        room: largest number of characters of all data together.
        on_note: called with a sentence if previews cannot be cached.

    Raises:
        InputError: the installed PyAV lacks the encoders.
    """
    sources = {clip: source for clip in dict.fromkeys(clips) if (source := _source(media, clip))}
    wanted, previews = list(sources), make_previews(list(sources.values()), on_note=on_note)
    fitted = fitting(previews, room)
    lost = sum(bool(before.type) and not after.type for before, after in zip(previews, fitted, strict=True))
    return Players(dict(zip(wanted, fitted, strict=True)), lost)


def _source(media: ClipMedia, clip: str) -> PreviewSource | None:
    """Return the media of a clip, which may be a window of a recording; None for unknown media."""
    window = None if clip in media else without_window(clip)
    if window is not None and window[0] in media:
        return replace(media[window[0]], segment=window[1])
    return media.get(clip)


def fitting(previews: Sequence[Preview], room: int) -> list[Preview]:
    """Return the previews, with at most `room` characters of data in total. Pictures have priority over players."""
    fitted = [Preview(reason=preview.reason) for preview in previews]
    for n, preview in enumerate(previews):
        if len(preview.picture) <= room:
            fitted[n], room = replace(fitted[n], picture=preview.picture), room - len(preview.picture)
    for n, preview in enumerate(previews):
        if len(preview.media) <= room:
            fitted[n], room = replace(fitted[n], media=preview.media, type=preview.type), room - len(preview.media)
    return fitted
