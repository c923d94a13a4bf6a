"""A preview of a clip: its first seconds, small enough to stand in a page, in a format that browsers play."""

import base64
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.jobs.failures import ABSENT
from aadml.feature_extraction.media import Clip, Frames, Limits, MediaFailure, Sound, decode, decoder_versions
from aadml.feature_extraction.media.encoding import Encoding, encode

SECONDS, FRAME_RATE, RATE = 5.0, 12, 48_000
SIDES = range(176, 257, 16)
"""The longer side of a preview, in pixels: whichever keeps the aspect ratio best."""

BLOCK = 16
"""Of H.264: sides that are no multiples of it do not always give the same bytes."""

_VIDEO_OPTIONS = {"preset": "veryfast", "crf": "29"}
ENCODINGS = (
    Encoding(
        container="mp4", video="libx264", audio="aac", options={"movflags": "+faststart"},
        video_options=_VIDEO_OPTIONS, audio_bit_rate=48_000,
    ),
    Encoding(
        container="webm", video="libvpx", audio="libopus", options={"fflags": "+bitexact"}, rates=(RATE,),
        video_options={"crf": "30", "b": "120k", "auto-alt-ref": "0"}, audio_bit_rate=40_000,
    ),
)  # fmt: skip
"""In the order of preference; the installed PyAV may lack an encoder."""

EDITION = 1
"""Of the rules that make previews: whatever changes their bytes raises it."""

_LIMITS = Limits(seconds=1e9)  # only the beginning is decoded, so any length will do
_QUALITY = 80  # of a JPEG


@dataclass(frozen=True)
class PreviewSource:
    """The files of a clip; empty where a modality has none."""

    visual: str
    audio: str


@dataclass(frozen=True)
class Preview:
    """What a page needs of a clip, or why there is nothing.

    Attributes:
        type: media type of `media`: "video/mp4", "audio/mp4"; empty where there is only a picture.
        media: in base64.
        picture: a JPEG in base64; empty for sound alone.
        reason: why something is missing, a key of `REASONS`; empty where all is there.
    """

    type: str = ""
    media: str = ""
    picture: str = ""
    reason: str = ""

    @property
    def size(self) -> int:
        """Count the characters that it takes in a page."""
        return len(self.media) + len(self.picture)

    def still(self) -> "Preview":
        """Keep the picture alone."""
        return Preview(picture=self.picture, reason=self.reason)


def preview_of(source: PreviewSource) -> Preview:
    """Make the preview of a clip in this process; a file that cannot be decoded gives a reason."""
    frames, reason = _tried(source.visual, _frames)
    sound, silence = _tried(source.audio, _sound)
    moving = frames is not None and len(frames.values) > 1
    if frames is None and sound is None:
        return Preview(reason=reason or silence or "missing")
    media, kind = b"", ""
    if moving or sound is not None:
        pictures = frames.values if frames is not None and moving else None
        media, kind = _encoded(pictures, None if sound is None else _aligned(sound, frames if moving else None))
    picture = "" if frames is None else _text(_jpeg(frames.values[len(frames.values) // 2]))
    return Preview(kind, _text(media), picture, reason or silence)


def _frames(path: str) -> Clip:
    """Decode the first seconds, small; of a still picture the aspect ratio is kept exactly."""
    import cv2

    first = decode(path, Frames(limit=1), _LIMITS, 0.0).values[0]
    height, width = shape_of(*first.shape[:2])
    clip = decode(path, Frames(FRAME_RATE, height, width, limit=int(SECONDS * FRAME_RATE)), _LIMITS, 0.0)
    if len(clip.values) > 1:
        return clip
    scale = min(1.0, SIDES[0] / max(first.shape[:2]))
    height, width = (max(1, round(side * scale)) for side in first.shape[:2])
    return replace(clip, values=cv2.resize(first, (width, height), interpolation=cv2.INTER_AREA)[None])


def shape_of(height: int, width: int) -> tuple[int, int]:
    """Choose the height and the width of a preview: whole blocks, and nearly the aspect ratio of the clip."""
    ratio = min(height, width) / max(height, width)
    shapes = [(max(BLOCK, round(side * ratio / BLOCK) * BLOCK), side) for side in SIDES]
    short, long = min(shapes, key=lambda shape: abs(shape[0] / shape[1] - ratio))
    return (short, long) if height <= width else (long, short)


def _sound(path: str) -> Clip:
    return decode(path, Sound(RATE, seconds=SECONDS), _LIMITS, 0.0)


def _tried(path: str, work: Callable[[str], Clip]) -> tuple[Clip | None, str]:
    """Decode one modality; what a file never had (sound, pictures) is no failure."""
    if not path:
        return None, ""
    try:
        return work(path), ""
    except MediaFailure as failure:
        return None, "" if failure.reason in ABSENT.values() else failure.reason


def _aligned(sound: Clip, frames: Clip | None) -> NDArray[Any]:
    """Let the sound begin when the pictures do: silence before it, or without its beginning."""
    late = 0 if frames is None else round((sound.start - frames.start) * RATE)
    shifted = np.concatenate([np.zeros(max(late, 0), dtype=np.float32), sound.values[max(-late, 0) :]])
    return shifted[: int(SECONDS * RATE)] if len(shifted) else sound.values


def _encoded(pictures: NDArray[Any] | None, sound: NDArray[Any] | None) -> tuple[bytes, str]:
    """Encode by the first encoding that is installed; return bytes and media type."""
    encoding = next((one for one in ENCODINGS if one.is_available()), None)
    if encoding is None:
        raise InputError(f"the installed PyAV has none of the encoders {', '.join(one.video for one in ENCODINGS)}")
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"preview.{encoding.container}"
        encode(path, encoding, pictures=pictures, sound=sound, frame_rate=FRAME_RATE, rate=RATE)
        return path.read_bytes(), f"{'audio' if pictures is None else 'video'}/{encoding.container}"


def _jpeg(picture: NDArray[Any]) -> bytes:
    import cv2

    done, jpeg = cv2.imencode(".jpg", cv2.cvtColor(picture, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, _QUALITY])
    return bytes(jpeg.tobytes()) if done else b""


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def one_preview(task: tuple[str, PreviewSource], report: object) -> Preview:
    """Make the preview of a clip that comes with a key; the work of a process of a pool."""
    return preview_of(task[1])


def quiet() -> None:
    """Let decoders use one thread and keep their remarks to themselves."""
    import av
    import cv2

    cv2.setNumThreads(1)
    av.logging.set_level(None)


def rules() -> list[Any]:
    """Give all that decides on the bytes of a preview but the files it is made of."""
    encodings = [asdict(one) for one in ENCODINGS]
    return [EDITION, SECONDS, list(SIDES), FRAME_RATE, RATE, _QUALITY, encodings, decoder_versions()]
