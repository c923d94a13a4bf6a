"""The clips of a page: players and pictures, shown wherever they are wanted, while their data stand there once."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.manifest import Manifest, read_manifest
from aadml.feature_extraction.media import REASONS
from aadml.reports.page import text
from aadml.reports.preview_cache import make_previews
from aadml.reports.previews import SECONDS, Preview, Source

STYLE = """
.player { display: block; position: relative; width: 100%; aspect-ratio: 4 / 3; padding: 0; border: 0; cursor: pointer;
  border-radius: 6px; overflow: hidden; background: var(--raised); color: #fff; font: inherit; }
.player video { width: 100%; height: 100%; object-fit: contain; display: block; }
.player::after { content: "\\25B6"; position: absolute; left: .4rem; bottom: .4rem; width: 1.9rem; height: 1.9rem;
  line-height: 1.9rem; text-align: center; border-radius: 50%; background: rgb(0 0 0 / .65); font-size: .8rem; }
.player.playing::after { content: "\\275A\\275A"; opacity: .6; }
.player.broken::after { content: "cannot be played in this browser"; width: auto; border-radius: 4px;
  padding: 0 .4rem; }
img.still { display: block; width: 100%; aspect-ratio: 4 / 3; object-fit: contain; background: var(--raised);
  border-radius: 6px; }
audio { display: block; width: 100%; height: 2.5rem; } .absent { color: var(--muted); font-size: .85rem; }
"""

SCRIPT = """
(() => {
  "use strict";
  const previews = JSON.parse(document.getElementById("previews").textContent);
  const made = new Map();
  const address = (key, type, base64) => {
    if (!made.has(key)) {
      const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
      made.set(key, URL.createObjectURL(new Blob([bytes], { type })));
    }
    return made.get(key);
  };
  const players = [];
  for (const place of document.querySelectorAll("[data-preview]")) {
    const number = place.dataset.preview;
    const [type, media, picture] = previews[number];
    const still = picture && address(number + "p", "image/jpeg", picture);
    if (place.tagName === "IMG") { place.src = still; continue; }
    const player = place.tagName === "AUDIO" ? place : place.querySelector("video");
    players.push(player);
    if (still && player !== place) player.poster = still;
    player.src = address(number + "m", type, media);
    player.addEventListener("play", () => players.forEach((other) => { if (other !== player) other.pause(); }));
    if (player === place) continue;
    const show = () => {
      place.classList.toggle("playing", !player.paused && !player.ended);
      place.setAttribute("aria-pressed", String(!player.paused && !player.ended));
    };
    for (const event of ["play", "pause", "ended"]) player.addEventListener(event, show);
    player.addEventListener("error", () => place.classList.add("broken"));
    place.addEventListener("click", () => { if (player.paused) player.play().catch(() => {}); else player.pause(); });
  }
})();
"""


@dataclass(frozen=True)
class Gallery:
    """The media of clips, by id.

    Attributes:
        media: id -> modality -> file.
    """

    media: Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class Players:
    """The clips that a page shows.

    Attributes:
        previews: id -> what there is of the clip, in the order in which they stand in the page.
        left_out: how many clips have lost their player, because the page would have become too large.
    """

    previews: Mapping[str, Preview]
    left_out: int = 0

    def show(self, clip: str) -> str:
        """Give the HTML of one clip: a player, a picture, or words where there is nothing."""
        preview = self.previews.get(clip, Preview())
        number, name = list(self.previews).index(clip) if clip in self.previews else 0, text(clip)
        still = f'<img class="still" data-preview="{number}" alt="A frame of {name}">' if preview.picture else ""
        if preview.type.startswith("video/"):
            return (
                f'<button type="button" class="player" data-preview="{number}" aria-label="Play {name}" '
                'aria-pressed="false"><video playsinline preload="none"></video></button>'
            )
        if preview.type:
            return (
                f'{still}<audio controls preload="none" data-preview="{number}" aria-label="Sound of {name}"></audio>'
            )
        return still or '<p class="absent">no preview</p>'

    def data(self) -> str:
        """Give the table of all data, for the script."""
        rows = {number: [one.type, one.media, one.picture] for number, one in enumerate(self.previews.values())}
        return (
            f'<script type="application/json" id="previews">{json.dumps(rows, separators=(",", ":"))}</script>'
            "<noscript><p>The players of this page need JavaScript.</p></noscript>"
        )

    def notes(self) -> list[str]:
        """Say what the players hold, and what is missing."""
        if not self.previews:
            return []
        notes = [
            f"A player holds the first {SECONDS:g} s of a clip, with sound, made small for this page; it plays sound "
            "and picture, of which the model saw only the modality that is named."
        ]
        if self.left_out:
            notes.append(
                f"{self.left_out} of {len(self.previews)} clips are without player: the page would be too large."
            )
        counts = Counter(one.reason for one in self.previews.values() if one.reason)
        notes += [f"{count} of {len(self.previews)} clips could not be read in full: {REASONS[reason]}."
                  for reason, count in sorted(counts.items())]  # fmt: skip
        return notes


def find_gallery(manifest: Path | None, features: str | None) -> Gallery:
    """Find the media of a run: of the manifest given, or of a `manifest.csv` beside the feature file.

    Raises:
        InputError: a manifest was given and cannot be read.
    """
    if manifest is not None:
        return _of(read_manifest(manifest))
    beside = Path(features).with_name("manifest.csv") if features else None
    if beside is None or not beside.is_file():
        return Gallery({})
    try:
        return _of(read_manifest(beside))
    except InputError:
        return Gallery({})


def make_players(
    gallery: Gallery, clips: Sequence[str], room: int, *, on_note: Callable[[str], None] | None = None
) -> Players:
    """Make the players of some clips, as many as there is room for.

    Args:
        gallery: where the media are.
        clips: ids, in the order in which they stand in the page; an id may occur again.
        room: characters that all data may take.
        on_note: called where previews cannot be kept for the next page.
    """
    wanted = [clip for clip in dict.fromkeys(clips) if clip in gallery.media]
    sources = [
        Source(media.get("visual", ""), media.get("audio", "")) for media in map(gallery.media.get, wanted) if media
    ]
    previews = make_previews(sources, on_note=on_note)
    fitted = fitting(previews, room)
    lost = sum(bool(before.type) and not after.type for before, after in zip(previews, fitted, strict=True))
    return Players(dict(zip(wanted, fitted, strict=True)), lost)


def fitting(previews: Sequence[Preview], room: int) -> list[Preview]:
    """Keep what there is room for: all pictures first, then players, in their order."""
    kept = [Preview(reason=one.reason) for one in previews]
    for n, one in enumerate(previews):
        if len(one.picture) <= room:
            kept[n], room = replace(kept[n], picture=one.picture), room - len(one.picture)
    for n, one in enumerate(previews):
        if len(one.media) <= room:
            kept[n], room = replace(kept[n], media=one.media, type=one.type), room - len(one.media)
    return kept


def _of(manifest: Manifest) -> Gallery:
    return Gallery({row.id: row.media for row in manifest.rows})
