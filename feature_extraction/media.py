"""Sound and frames out of media files, with one reason from a fixed list whenever they cannot be had.

Both come from PyAV. OpenCV reads frames no faster (within a tenth) and hides what matters here: it cannot tell a stream
that ended from one that broke off, takes a cover picture for a video, and opens playlists and addresses. It resizes the
kept frames.

A file is opened by Python and handed over as bytes, so its name means nothing to FFmpeg (no `concat:`, no `%03d`, no
address), and a protocol whitelist that names no protocol keeps any demuxer from opening another file.
"""

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import av
import cv2
import numpy as np
from av.stream import Disposition
from numpy.typing import NDArray

from feature_extraction.ground.errors import InputError
from feature_extraction.truncation import missing_bytes

# Why a clip has no features; where several things are wrong with one clip, the first of this list is named.
REASONS = {
    "missing": "no such file, or it may not be read",
    "refused": "a playlist or another kind of file that points to further files",
    "timeout": "decoding took longer than the time limit",
    "crashed": "the decoder took its process down",
    "too-large": "longer, larger or with more streams than the limits allow",
    "corrupt": "it cannot be opened, holds nothing, or decoding breaks off",
    "no-audio": "there is no sound track",
    "no-video": "there is no video stream (a cover picture is none)",
    "too-short": "shorter than the extractor needs",
}
_POINTERS = {"hls", "applehttp", "concat", "dash", "imf", "sdp", "rtsp", "rtp", "image2", "lavfi", "webm_dash_manifest"}
_POINTER_HEADS = (
    b"#EXTM3U",
    b"ffconcat",
    b"[playlist]",
    b"[InternetShortcut]",
    b"<?xml",
    b"<MPD",
    b"<ASX",
    b"RTSPtext",
)
_TRIM_SECONDS = 0.15  # an AAC encoder pads by up to two of its frames; a header further off is not believed


class MediaFailure(Exception):  # noqa: N818 - a finding about a file, not a defect of the program
    """What one clip lacks.

    Attributes:
        reason: a key of `REASONS`.
        detail: what was seen, one line.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = " ".join(detail.split())


@dataclass(frozen=True)
class Sound:
    """What an audio extractor wants decoded: mono float32 samples (s,) in [-1, 1], the mean of the channels.

    Attributes:
        sample_rate: in Hz; the sound is resampled once, straight to it.
    """

    sample_rate: int


@dataclass(frozen=True)
class Frames:
    """What a visual extractor wants decoded: RGB uint8 frames (t, height, width, 3), upright.

    Attributes:
        frames_per_second: how many are kept of each second: the first frame, then the first one at or after each step.
        height: frames are resized to it in the decoding process (None: as they are).
        width: as `height`; the aspect ratio is not kept.
        limit: at most so many frames a clip, the first ones.
    """

    frames_per_second: float = 1.0
    height: int | None = None
    width: int | None = None
    limit: int = 300

    def __post_init__(self) -> None:
        """Refuse what is no rate, no size and no number of frames."""
        rate = self.frames_per_second
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate < float("inf"):
            raise InputError(f"frames_per_second: {rate!r} given; a number above zero is needed")
        for name in ("height", "width", "limit"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise InputError(f"{name} of frames: {value!r} given; an integer above zero is needed")


@dataclass(frozen=True)
class Limits:
    """What is too large to be decoded.

    Attributes:
        seconds: of sound or video.
        pixels: of a frame.
        streams: of a file.
    """

    seconds: float = 3600.0
    pixels: int = 2**26
    streams: int = 64


def decode(path: str, inputs: Sound | Frames, limits: Limits, minimum_seconds: float) -> NDArray[Any]:
    """Decode what an extractor wants of a file.

    Args:
        path: the file; whatever its name looks like, it is a file.
        inputs: sound or frames.
        limits: beyond them the file is refused.
        minimum_seconds: with less sound or video the file is refused.

    Returns:
        Samples (s,) float32 or frames (t, height, width, 3) uint8; at least one.

    Raises:
        MediaFailure: there is nothing to be had, with the reason.
    """
    with _opened(path) as file:
        _refuse_pointers(file)
        missing = missing_bytes(file)
        try:
            # "none" is the name of no protocol: the file at hand is all that is ever read
            with av.open(_Bytes(file), mode="r", options={"protocol_whitelist": "none"}) as container:
                _check_container(container, limits)
                if missing:
                    raise MediaFailure("corrupt", f"the file is cut short: {missing} bytes are missing at its end")
                if isinstance(inputs, Sound):
                    return _samples(container, inputs, limits, minimum_seconds)
                return _frames(container, inputs, limits, minimum_seconds)
        except av.error.FFmpegError as error:
            raise MediaFailure("corrupt", f"{type(error).__name__}: {error.strerror}") from error
        except (MemoryError, cv2.error) as error:
            raise MediaFailure("too-large", f"{type(error).__name__}: {error}") from error
        except (ValueError, IndexError, EOFError, OSError, RuntimeError, NotImplementedError) as error:
            raise MediaFailure("corrupt", f"{type(error).__name__}: {error}") from error


class _Bytes:
    """A file without its name, which FFmpeg would otherwise interpret."""

    def __init__(self, file: IO[bytes]) -> None:
        self.read, self.seek, self.tell = file.read, file.seek, file.tell


@contextmanager
def _opened(path: str) -> Iterator[IO[bytes]]:
    if not Path(path).is_file():  # also keeps away from folders and from pipes, which block
        raise MediaFailure("missing", "is not a file" if Path(path).exists() else "no such file")
    try:
        file = Path(path).open("rb")  # noqa: SIM115 - closed below; only opening it may count as missing
    except OSError as error:
        raise MediaFailure("missing", error.strerror or str(error)) from error
    with file:
        yield file


def _refuse_pointers(file: IO[bytes]) -> None:
    head = file.read(64).lstrip(b"\xef\xbb\xbf \t\r\n")
    file.seek(0)
    if head.startswith(_POINTER_HEADS):
        raise MediaFailure("refused", f"begins with {head[:12]!r}: a playlist")


def _check_container(container: Any, limits: Limits) -> None:
    if _POINTERS & set(container.format.name.split(",")):
        raise MediaFailure("refused", f"its format is {container.format.name}")
    if len(container.streams) > limits.streams:
        raise MediaFailure("too-large", f"{len(container.streams)} streams; the limit is {limits.streams}")


def _decodable(stream: Any) -> Any:
    """Return a stream to be decoded on one thread: the processes are the parallelism."""
    if stream.codec_context is None:
        raise MediaFailure("corrupt", f"no decoder knows the codec of its {stream.type} stream")
    stream.thread_count = 1
    return stream


def _samples(container: Any, inputs: Sound, limits: Limits, minimum_seconds: float) -> NDArray[np.float32]:
    if not container.streams.audio:
        raise MediaFailure("no-audio", "no sound track")
    stream = _decodable(container.streams.audio[0])
    rate, most, count = inputs.sample_rate, int(limits.seconds * inputs.sample_rate), 0
    blocks = []
    for block in _resampled(_decoded(container, stream), rate):
        blocks.append(block)
        count += len(block)
        if count > most + rate:
            raise MediaFailure("too-large", f"more than {limits.seconds:g} s of sound")
    if not count:
        raise MediaFailure("corrupt", "the sound track yields no samples")
    samples = np.concatenate(blocks)
    if stream.duration is not None:
        declared = round(float(stream.duration * stream.time_base) * rate)
        if 0 < declared < count <= declared + int(_TRIM_SECONDS * rate):
            samples = samples[:declared]
    if not np.isfinite(samples).all():
        raise MediaFailure("corrupt", "the sound holds NaN or infinity")
    if len(samples) < minimum_seconds * rate:
        raise MediaFailure("too-short", f"{len(samples) / rate:.3f} s of sound; {minimum_seconds:g} s are needed")
    return np.clip(samples, -1.0, 1.0)


def _resampled(frames: Iterator[Any], rate: int) -> Iterator[NDArray[np.float32]]:
    """Yield mono blocks (s,); a stream that changes its layout or rate on the way gets a new resampler there."""
    kind: tuple[str, str, int] | None = None
    resampler: Any = None
    for frame in frames:
        if (frame.format.name, frame.layout.name, frame.sample_rate) != kind:
            yield from _drained(resampler)
            kind = (frame.format.name, frame.layout.name, frame.sample_rate)
            resampler = av.AudioResampler(format="fltp", rate=rate)
        frame.pts = None  # gaps and jumps of the clock are not sound
        yield from (_mono(block) for block in resampler.resample(frame))
    yield from _drained(resampler)


def _drained(resampler: Any) -> Iterator[NDArray[np.float32]]:
    if resampler is not None:
        yield from (_mono(block) for block in resampler.resample(None))


def _mono(block: Any) -> NDArray[np.float32]:
    """Average the channels; FFmpeg's own down-mix would make two equal channels louder by 3 dB."""
    channels: NDArray[np.float32] = block.to_ndarray()  # (c, s)
    return channels[0] if len(channels) == 1 else np.asarray(channels.mean(axis=0), dtype=np.float32)


def _frames(container: Any, inputs: Frames, limits: Limits, minimum_seconds: float) -> NDArray[np.uint8]:
    streams = [s for s in container.streams.video if not s.disposition & Disposition.attached_pic]
    if not streams:
        covers = len(container.streams.video)
        raise MediaFailure("no-video", f"nothing but {covers} cover picture(s)" if covers else "no video stream")
    stream = _decodable(streams[0])
    if stream.codec_context.width * stream.codec_context.height > limits.pixels:
        raise MediaFailure("too-large", f"{stream.codec_context.width} x {stream.codec_context.height} pixels")
    kept: list[NDArray[np.uint8]] = []
    count, start, seconds = 0, None, 0.0
    for frame in _decoded(container, stream):
        if frame.width * frame.height > limits.pixels:
            raise MediaFailure("too-large", f"a frame of {frame.width} x {frame.height} pixels")
        time = frame.time if frame.time is not None else count / float(stream.average_rate or 25)
        start = time if start is None else start
        seconds = max(seconds, time - start)
        count += 1
        if seconds > limits.seconds:
            raise MediaFailure("too-large", f"more than {limits.seconds:g} s of video")
        if len(kept) < inputs.limit and seconds * inputs.frames_per_second >= len(kept) - 1e-6:
            kept.append(_picture(frame, inputs, kept[0] if kept else None))
    if not kept:
        raise MediaFailure("corrupt", "the video stream yields no frames")
    shown = seconds + (seconds / (count - 1) if count > 1 else 0.0)  # the last frame is shown as long as the others
    if shown < minimum_seconds:
        raise MediaFailure("too-short", f"{shown:.3f} s of video; {minimum_seconds:g} s are needed")
    return np.stack(kept)


def _picture(frame: Any, inputs: Frames, first: NDArray[np.uint8] | None) -> NDArray[np.uint8]:
    """Turn a decoded frame into an upright RGB picture of the wanted size, or of the size of the clip's first one."""
    picture: NDArray[np.uint8] = frame.to_ndarray(format="rgb24")
    quarters = round((frame.rotation or 0) / 90) % 4  # counterclockwise, as the display matrix counts
    if quarters:
        picture = np.ascontiguousarray(np.rot90(picture, quarters))
    height = inputs.height or (len(picture) if first is None else first.shape[0])
    width = inputs.width or (picture.shape[1] if first is None else first.shape[1])
    if picture.shape[:2] == (height, width):
        return picture
    shrinks = height * width < picture.shape[0] * picture.shape[1]
    resized = cv2.resize(picture, (width, height), interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR)
    return np.asarray(resized, dtype=np.uint8)


def _decoded(container: Any, stream: Any) -> Iterator[Any]:
    """Yield the frames of a stream; a packet that was cut short ends in `corrupt`, where a decoder would make do."""
    for packet in container.demux(stream):
        if packet.is_corrupt:
            raise MediaFailure("corrupt", "the file ends, or is damaged, in the middle of a packet")
        yield from packet.decode()


@functools.cache
def decoder_versions() -> dict[str, str]:
    """Name the versions of what decodes, as provenance."""
    names = ("libavcodec", "libavformat", "libavutil", "libswresample", "libswscale")
    libraries = {name: ".".join(map(str, av.library_versions[name])) for name in names}
    return {"av": av.__version__, "opencv": cv2.__version__, "numpy": np.__version__, **libraries}
