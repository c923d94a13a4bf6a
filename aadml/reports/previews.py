"""Previews of clips: their first seconds, small enough for a page, in a format that browsers play.

Previews are built in worker processes and cached. Their keys are checksums of the clip files and settings.
"""

import base64
import hashlib
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.ground.atomic import write_bytes
from aadml.feature_extraction.ground.checksummed_json import seal, unseal
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.file_content import content_of, stamp_of
from aadml.feature_extraction.ground.kept_workers import worker_pool
from aadml.feature_extraction.ground.segment import WHOLE, Segment
from aadml.feature_extraction.ground.worker_pool import Finished, Lost, processors
from aadml.feature_extraction.ground.worker_process import Conditions
from aadml.feature_extraction.jobs.failures import ABSENT
from aadml.feature_extraction.media.decoding import decode, decoder_versions
from aadml.feature_extraction.media.encoding import Encoding, encode
from aadml.feature_extraction.media.inputs import Clip, Frames, Limits, MediaFailure, Sound
from aadml.feature_extraction.weights.table import weights_folder

PROCESSOR_SECONDS = 60.0
"""Limit of the processor time for the preview of one clip."""

SECONDS, FRAME_RATE, RATE = 5.0, 12, 48_000
SIDES = range(176, 257, 16)
"""Candidates for the longer side of a preview, in pixels. The side with the best aspect ratio is used."""

BLOCK = 16
"""Block size of H.264. Sides that are not multiples of this size are not always encoded reproducibly."""

_VIDEO_OPTIONS = {"preset": "veryfast", "crf": "29"}
ENCODINGS = (
    Encoding(
        container="mp4", video="libx264", audio="aac", options={"movflags": "+faststart"},
        video_options=_VIDEO_OPTIONS, audio_bit_rate=48_000,
    ),
    Encoding(
        container="webm", video="libvpx", audio="libopus", options={"fflags": "+bitexact"},
        video_options={"crf": "30", "b": "120k", "auto-alt-ref": "0"}, audio_bit_rate=40_000,
    ),
)  # fmt: skip
"""Encodings in order of preference; the installed PyAV may lack an encoder."""

EDITION = 2
"""Version of the preview format, which is increased with every change of the bytes."""

_LIMITS = Limits(seconds=1e9)  # only the beginning is decoded, so the length is not limited
_QUALITY = 80  # quality of a JPEG, at most 100
_WAVE = (11, 114, 133)  # color of a waveform


@dataclass(frozen=True)
class PreviewSource:
    """Files of a clip.

    Attributes:
        visual: path of the file with the picture; empty if there is none.
        audio: path of the file with the sound; empty if there is none.
        segment: part of the files that is the clip.
        still: whether the preview is only a picture: a frame, or the waveform if the clip has no picture.
    """

    visual: str
    audio: str
    segment: Segment = WHOLE
    still: bool = False


@dataclass(frozen=True)
class Preview:
    """Media of a clip for a page.

    Attributes:
        type: media type of `media`, such as "video/mp4"; empty without media.
        media: encoded video, or sound alone, in base64; empty without video and sound.
        picture: a JPEG in base64; empty without a picture.
        reason: reason for a missing part, a key of `REASONS`; empty if the preview is complete.
    """

    type: str = ""
    media: str = ""
    picture: str = ""
    reason: str = ""


def preview_of(source: PreviewSource) -> Preview:
    """Build the preview of a clip in this process. After a failure of decoding, the preview states the reason.

    Raises:
        InputError: the installed PyAV lacks the encoders.
    """
    if source.still:
        return _still(source)
    frames, reason = _tried(source.visual, source.segment, _frames)
    sound, silence = _tried(source.audio, source.segment, _sound)
    moving = frames is not None and len(frames.values) > 1
    if frames is None and sound is None:
        return Preview(reason=reason or silence or "missing")
    media, kind = b"", ""
    if moving or sound is not None:
        pictures = frames.values if frames is not None and moving else None
        media, kind = _encoded(pictures, None if sound is None else _aligned(sound, frames if moving else None))
    picture = "" if frames is None else _text(_jpeg(frames.values[len(frames.values) // 2]))
    return Preview(kind, _text(media), picture, reason or silence)


def _still(source: PreviewSource) -> Preview:
    """Build the picture of a clip: its frame after one second, or the waveform of a clip without a picture.

    A clip of less than one second is shown by its first frame.
    """
    frames, reason = _tried(source.visual, source.segment, _first_frames)
    if frames is not None:
        return Preview(picture=_text(_jpeg(_smaller(frames.values[-1]))), reason=reason)
    sound, silence = _tried(source.audio, source.segment, _sound)
    if sound is None:
        return Preview(reason=reason or silence or "missing")
    width, height = SIDES[0], SIDES[0] * 3 // 4
    peaks = [np.abs(part).max(initial=0.0) for part in np.array_split(sound.values, width // 2)]
    picture = np.full((height, width, 3), 244, dtype=np.uint8)
    for column, peak in enumerate(peaks):
        reach = max(1, round(min(1.0, float(peak)) * (height // 2 - 8)))
        picture[height // 2 - reach : height // 2 + reach, 2 * column] = _WAVE
    return Preview(picture=_text(_jpeg(picture)))


def _first_frames(path: str, segment: Segment) -> Clip:
    return decode(path, Frames(1.0, limit=2), _LIMITS, 0.0, segment)


def _smaller(frame: NDArray[Any]) -> NDArray[Any]:
    """Shrink a frame (height, width, 3) to at most SIDES[0] pixels for the longer side, and keep its aspect ratio."""
    import cv2

    scale = min(1.0, SIDES[0] / max(frame.shape[:2]))
    height, width = (max(1, round(side * scale)) for side in frame.shape[:2])
    return np.asarray(cv2.resize(frame, (width, height), interpolation=cv2.INTER_AREA))


def _frames(path: str, segment: Segment) -> Clip:
    """Decode the first seconds at a small size. A still picture keeps its exact aspect ratio."""
    first = decode(path, Frames(limit=1), _LIMITS, 0.0, segment).values[0]
    height, width = shape_of(*first.shape[:2])
    inputs = Frames(FRAME_RATE, height, width, limit=int(SECONDS * FRAME_RATE))
    clip = decode(path, inputs, _LIMITS, 0.0, segment)
    if len(clip.values) > 1:
        return clip
    return replace(clip, values=_smaller(first)[None])


def shape_of(height: int, width: int) -> tuple[int, int]:
    """Return the height and width of a preview in pixels, as multiples of BLOCK.

    The preview has nearly the aspect ratio of the clip, whose height and width in pixels are the arguments.
    """
    ratio = min(height, width) / max(height, width)
    shapes = [(max(BLOCK, round(side * ratio / BLOCK) * BLOCK), side) for side in SIDES]
    short, long = min(shapes, key=lambda shape: abs(shape[0] / shape[1] - ratio))
    return (short, long) if height <= width else (long, short)


def _sound(path: str, segment: Segment) -> Clip:
    return decode(path, Sound(RATE, seconds=SECONDS), _LIMITS, 0.0, segment)


def _tried(path: str, segment: Segment, work: Callable[[str, Segment], Clip]) -> tuple[Clip | None, str]:
    """Return the decoded modality (None if absent or damaged), and the reason for a failure; "" without a failure.

    A file without the modality is not a failure.
    """
    if not path:
        return None, ""
    try:
        return work(path, segment), ""
    except MediaFailure as failure:
        return None, "" if failure.reason in ABSENT.values() else failure.reason


def _aligned(sound: Clip, frames: Clip | None) -> NDArray[Any]:
    """Align the sound with the first picture: add silence before the sound, or cut its beginning."""
    late = 0 if frames is None else round((sound.start - frames.start) * RATE)
    shifted = np.concatenate([np.zeros(max(late, 0), dtype=np.float32), sound.values[max(-late, 0) :]])
    return shifted[: int(SECONDS * RATE)] if len(shifted) else sound.values


def _encoded(pictures: NDArray[Any] | None, sound: NDArray[Any] | None) -> tuple[bytes, str]:
    """Encode the given pictures and sound with the first available encoding; return the bytes and the media type."""
    encoding = next((encoding for encoding in ENCODINGS if encoding.is_available()), None)
    if encoding is None:
        encoders = ", ".join(encoding.video for encoding in ENCODINGS)
        raise InputError(f"previews: the installed PyAV has none of the encoders {encoders}; install av from PyPI")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"preview.{encoding.container}"
        encode(path, encoding, pictures=pictures, sound=sound, frame_rate=FRAME_RATE, rate=RATE)
        return path.read_bytes(), f"{'audio' if pictures is None else 'video'}/{encoding.container}"


def _jpeg(picture: NDArray[Any]) -> bytes:
    import cv2

    done, jpeg = cv2.imencode(".jpg", cv2.cvtColor(picture, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, _QUALITY])
    return bytes(jpeg.tobytes()) if done else b""


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _in_worker(task: tuple[str, PreviewSource, str], report: object) -> Preview:
    tempfile.tempdir = task[2]
    return preview_of(task[1])


def _set_up() -> None:
    """Configure decoders to print nothing."""
    import av

    av.logging.set_level(None)


def _rules() -> list[Any]:
    """Return all settings that, besides the `PreviewSource` and its files, determine the bytes of a preview."""
    encodings = [asdict(encoding) for encoding in ENCODINGS]
    return [EDITION, SECONDS, list(SIDES), FRAME_RATE, RATE, _QUALITY, encodings, decoder_versions()]


def make_previews(
    sources: Sequence[PreviewSource], *, cache: Path | None = None, on_note: Callable[[str], None] | None = None
) -> list[Preview]:
    """Build the previews of clips in worker processes, so that a crash of a decoder affects only one clip.

    Previews are cached. The key of a preview is a checksum of the clip files and settings.

    Args:
        sources: files of each clip.
        cache: folder of cached previews; by default next to the weights.
        on_note: called with a sentence if previews cannot be cached.

    Returns:
        A preview for each source.

    Raises:
        InputError: the installed PyAV lacks the encoders.
    """
    folder = cache or weights_folder().parent / "previews"
    keys = [key_of(source) for source in sources]
    previews = {key: _cached(folder, key) for key in dict.fromkeys(keys) if key}
    missing = {key: source for key, source in zip(keys, sources, strict=True) if key and previews[key] is None}
    refusal = ""
    for key, preview in _built(missing):
        previews[key] = preview
        try:
            if preview.reason not in ("crashed", "timeout"):
                write_bytes(folder / f"{key}.json", seal(asdict(preview)), durable=False)
        except InputError as error:
            refusal = str(error)
    if refusal and on_note is not None:
        on_note(f"the previews of clips cannot be cached: {refusal}")
    return [previews.get(key) or Preview(reason="missing") for key in keys]


def _built(sources: Mapping[str, PreviewSource]) -> Iterator[tuple[str, Preview]]:
    """Yield keys and previews, built in at most as many processes as there are cores."""
    workers = max(1, min(len(sources), processors()))
    with tempfile.TemporaryDirectory() as folder:  # a worker that is killed leaves files
        conditions = Conditions(30 * PROCESSOR_SECONDS, PROCESSOR_SECONDS, setup=_set_up)
        with worker_pool(_in_worker, workers, conditions) as pool:
            for event in pool.work_off([(key, source, folder) for key, source in sources.items()]):
                if isinstance(event, Finished):
                    yield event.task[0], event.value
                elif isinstance(event, Lost):
                    yield event.task[0], Preview(reason="timeout" if event.late else "crashed")


def key_of(source: PreviewSource) -> str:
    """Return a checksum of the files and settings of a preview; "" without a file, or for an unreadable file."""
    stamps = {path: stamp_of(path) for path in (source.visual, source.audio) if path}
    sums = {path: content_of(path, stamp) if stamp else "" for path, stamp in stamps.items()}
    if not any(sums.values()) or any(stamps[path] and not content for path, content in sums.items()):
        return ""
    content = [sums.get(source.visual), sums.get(source.audio)]
    content += filter(None, [str(source.segment), "still" * source.still])
    return hashlib.sha256(json.dumps([content, _rules()], sort_keys=True).encode()).hexdigest()


def _cached(folder: Path, key: str) -> Preview | None:
    """Read a cached preview; None for an absent or damaged preview."""
    place = folder / f"{key}.json"
    with suppress(OSError, InputError, TypeError):
        content = unseal(place.read_bytes(), place)
        return Preview(**{name: str(content[name]) for name in ("type", "media", "picture", "reason")})
    return None
