"""Clips in a page: a thumbnail one can click, a player where the file is small enough to stand in the page."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path

from feature_extraction.ground.errors import InputError
from feature_extraction.manifest import Manifest, read_manifest

LARGEST_CLIP = 400_000
"""Bytes of a clip that is put into the page whole; of larger ones only a picture stands there."""

TYPES = {".mp4": "video/mp4", ".webm": "video/webm", ".m4v": "video/mp4", ".ogv": "video/ogg"}
SOUNDS = {".wav": "audio/wav", ".mp3": "audio/mpeg", ".ogg": "audio/ogg", ".flac": "audio/flac", ".m4a": "audio/mp4"}


@dataclass(frozen=True)
class Gallery:
    """The media of clips, by id.

    Attributes:
        media: id -> modality -> file.
    """

    media: Mapping[str, Mapping[str, str]]

    def show(self, clip: str) -> str:
        """Give the HTML of one clip: player, picture, or nothing where its file is not at hand."""
        paths = self.media.get(clip, {})
        visual, audio = paths.get("visual"), paths.get("audio")
        picture = thumbnail(visual) if visual else None
        if visual and _fits(visual, TYPES):
            poster = f' poster="{picture}"' if picture else ""
            return f'<video controls preload="none"{poster} src="{_embedded(visual, TYPES)}"></video>'
        shown = f'<img alt="{escape(clip)}" src="{picture}">' if picture else ""
        if audio and _fits(audio, SOUNDS):
            shown += f'<audio controls preload="none" src="{_embedded(audio, SOUNDS)}"></audio>'
        return shown


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


def thumbnail(path: str, side: int = 144) -> str | None:
    """Give the middle frame of a video (or the picture) as a data address; None where it cannot be read."""
    try:
        import cv2
    except ImportError:
        return None
    capture = cv2.VideoCapture(path)
    try:
        count = int(capture.get(cv2.CAP_PROP_FRAME_COUNT))
        for _ in range(max(count // 2, 0)):
            capture.grab()
        found, frame = capture.read()
        if not found:
            return None
        scale = side / max(frame.shape[:2])
        small = cv2.resize(frame, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
        done, jpeg = cv2.imencode(".jpg", small, [cv2.IMWRITE_JPEG_QUALITY, 82])
        return f"data:image/jpeg;base64,{base64.b64encode(jpeg.tobytes()).decode()}" if done else None
    finally:
        capture.release()


def _of(manifest: Manifest) -> Gallery:
    return Gallery({row.id: row.media for row in manifest.rows})


def _fits(path: str, types: Mapping[str, str]) -> bool:
    file = Path(path)
    return file.suffix.lower() in types and file.is_file() and file.stat().st_size <= LARGEST_CLIP


def _embedded(path: str, types: Mapping[str, str]) -> str:
    file = Path(path)
    return f"data:{types[file.suffix.lower()]};base64,{base64.b64encode(file.read_bytes()).decode()}"
