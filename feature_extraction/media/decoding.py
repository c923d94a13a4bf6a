"""Opening a media file whose name, headers and neighbors are not to be trusted."""

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import av
import cv2
import numpy as np

from aadml.feature_extraction.media.frames import decoded_frames
from aadml.feature_extraction.media.inputs import Clip, Frames, Limits, MediaFailure, Sound, Text
from aadml.feature_extraction.media.sound import decoded_sound
from aadml.feature_extraction.media.truncation import Ending, ending

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


def decode(path: str, inputs: Sound | Frames | Text, limits: Limits, minimum_seconds: float) -> Clip:
    """Decode what an extractor wants of a file.

    Args:
        path: the file; whatever its name looks like, it is a file. For text, the text itself.
        inputs: sound, frames or text.
        limits: beyond them the file is refused.
        minimum_seconds: with less sound or video the file is refused.

    Returns:
        Samples (s,) float32 or frames (t, height, width, 3) uint8, at least one; when they begin, and what is odd.

    Raises:
        MediaFailure: there is nothing to be had, with the reason.
    """
    if isinstance(inputs, Text):
        return _text(path)
    with _opened(path) as file:
        _refuse_pointers(file)
        end = ending(file)
        try:
            # "none" is the name of no protocol: the file at hand is all that is ever read
            options = {"protocol_whitelist": "none"}
            with av.open(_Bytes(file), mode="r", options=options, metadata_errors="replace") as container:
                _check_container(container, limits)
                _check_end(end)
                return _with_remarks(_decoded(container, inputs, limits, minimum_seconds, end), end)
        except av.error.FFmpegError as error:
            _check_end(end)  # what is missing, its index perhaps, is why
            raise MediaFailure("corrupt", f"{type(error).__name__}: {error.strerror}") from error
        except (MemoryError, cv2.error) as error:
            raise MediaFailure("too-large", f"{type(error).__name__}: {error}") from error
        except (ValueError, IndexError, EOFError, OSError, RuntimeError, NotImplementedError) as error:
            raise MediaFailure("corrupt", f"{type(error).__name__}: {error}") from error


def _decoded(container: Any, inputs: Sound | Frames, limits: Limits, minimum_seconds: float, end: Ending) -> Clip:
    if isinstance(inputs, Sound):
        return decoded_sound(container, inputs, limits, minimum_seconds, open_ended=end.open_ended)
    return decoded_frames(container, inputs, limits, minimum_seconds, open_ended=end.open_ended)


def _text(text: str) -> Clip:
    if not text.strip():
        raise MediaFailure("no-text", "its text is empty")
    return Clip(np.frombuffer(text.encode("utf-8"), dtype=np.uint8))


def _with_remarks(clip: Clip, end: Ending) -> Clip:
    return replace(clip, remarks=(*end.remarks(), *clip.remarks))


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
        if not file.read(1):
            raise MediaFailure("corrupt", "the file is empty")
        file.seek(0)
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


def _check_end(end: Ending) -> None:
    if end.missing and not end.tolerable:
        raise MediaFailure("corrupt", f"the file is cut short: {end.missing} bytes are missing at its end")


@functools.cache
def decoder_versions() -> dict[str, str]:
    """Name the versions of what decodes, as provenance."""
    names = ("libavcodec", "libavformat", "libavutil", "libswresample", "libswscale")
    libraries = {name: ".".join(map(str, av.library_versions[name])) for name in names}
    return {"av": av.__version__, "opencv": cv2.__version__, "numpy": np.__version__, **libraries}
