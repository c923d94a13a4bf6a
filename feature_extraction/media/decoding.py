"""Decoding of untrusted media files."""

import errno
import functools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

import av
import cv2
import numpy as np
from av.format import Flags

from aadml.feature_extraction.ground.file_content import file_kind
from aadml.feature_extraction.ground.segment import WHOLE, Segment
from aadml.feature_extraction.media.frames import decoded_frames
from aadml.feature_extraction.media.inputs import Clip, Frames, Limits, MediaFailure, Sound, Text
from aadml.feature_extraction.media.sound import decoded_sound
from aadml.feature_extraction.media.truncation import Ending, ending, is_media

# PyAV 18 refuses files whose tags are not UTF-8, unless it is told to replace bytes; later versions never refuse them
_TAGS = {"metadata_errors": "replace"} if av.__version__.startswith("18.") else {}
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


def decode(
    path: str, inputs: Sound | Frames | Text, limits: Limits, minimum_seconds: float, segment: Segment = WHOLE
) -> Clip:
    """Decode one media file, or one text, as the input of an extractor.

    Args:
        path: path of the file, never an address or a pattern; for a text input, the text itself.
        inputs: kind of data to decode, with the settings of that kind.
        limits: limits that a file must not exceed.
        minimum_seconds: minimum duration of sound or video, in seconds.
        segment: part of the recording to decode, exact to one sample or frame; not used for text.

    Returns:
        Clip of samples (s,) float32, frames (t, height, width, 3) uint8 or bytes of text (n,) uint8; s, t and n are
        at least 1.

    Raises:
        MediaFailure: there is no valid clip; the exception has the reason, a key of `REASONS`.
    """
    if isinstance(inputs, Text):
        if not path.strip():
            raise MediaFailure("no-text", "the text is empty")
        return Clip(np.frombuffer(path.encode("utf-8"), dtype=np.uint8))
    with _container(path, limits) as (container, end):
        if isinstance(inputs, Sound):
            clip = decoded_sound(container, inputs, limits, minimum_seconds, segment, end)
        else:
            clip = decoded_frames(container, inputs, limits, minimum_seconds, segment, end)
        return replace(clip, remarks=(*end.remarks(), *clip.remarks))


def recording_seconds(path: str) -> float:
    """Return the length of a recording in seconds, from its beginning to the end of its sound and video.

    The length is read from the header if the format states lengths. Otherwise all packets are read, but not decoded.

    Raises:
        MediaFailure: the file cannot be read, or has neither sound nor video.
    """
    with _container(path, Limits()) as (container, _):
        streams = [stream for stream in container.streams if stream.type in ("audio", "video")]
        if not streams:
            raise MediaFailure("corrupt", "the file has neither sound nor video")
        if container.duration is not None and not container.format.flags & Flags.generic_index.value:
            return float(container.duration / av.time_base)
        begin = (container.start_time or 0) / av.time_base
        ends = [(p.pts + (p.duration or 0)) * p.time_base for p in container.demux(streams) if p.pts is not None]
        return float(max(ends, default=0) - begin)


@contextmanager
def _container(path: str, limits: Limits) -> Iterator[tuple[Any, Ending]]:
    """Open a media file and yield its container and its `Ending`.

    Errors of reading and decoding, also in the `with` block, are raised as MediaFailure.
    """
    with _opened(path) as file:
        _refuse_pointers(file)
        end = ending(file)
        try:
            options = {"protocol_whitelist": "none"}  # no protocol has this name, so FFmpeg opens no other file
            data = SimpleNamespace(read=file.read, seek=file.seek, tell=file.tell)
            with av.open(data, mode="r", options=options, **_TAGS) as container:
                _check_container(container, limits)
                yield container, end
        except av.error.FFmpegError as error:
            if not end.finding and not is_media(file):
                raise MediaFailure("not-a-media-file", "the file is of no known media format") from error
            cause = end.finding or f"{type(error).__name__}: {error.strerror}"  # the missing part may be the index
            raise MediaFailure("corrupt", cause) from error
        except (MemoryError, cv2.error) as error:
            raise MediaFailure("too-large", f"{type(error).__name__}: {error}") from error
        except (ValueError, IndexError, EOFError, RuntimeError, NotImplementedError) as error:
            raise MediaFailure("corrupt", f"{type(error).__name__}: {error}") from error


@contextmanager
def _opened(path: str) -> Iterator[IO[bytes]]:
    """Open a regular file and yield the file.

    Errors of the file system, also in the `with` block, are raised as MediaFailure. These errors may be temporary, so
    their reason is "missing", which is not recorded.
    """
    try:
        kind = file_kind(os.stat(path))  # noqa: PTH116 - a path may contain anything
        if kind == "folder":
            raise MediaFailure("missing", "the path is a folder")
        if kind != "regular file":  # opening a pipe would block
            raise MediaFailure("special-file", f"the path is a {kind}")
        with Path(path).open("rb") as file:
            if not file.read(1):
                raise MediaFailure("corrupt", "the file is empty")
            file.seek(0)
            yield file
    except (FileNotFoundError, ValueError) as error:
        raise MediaFailure("missing", "the file does not exist") from error
    except OSError as error:
        if error.errno == errno.EINVAL:  # the file refers to a position beyond any file
            raise MediaFailure("corrupt", f"{type(error).__name__}: {error}") from error
        raise MediaFailure("missing", error.strerror or str(error)) from error


def _refuse_pointers(file: IO[bytes]) -> None:
    head = file.read(64).lstrip(b"\xef\xbb\xbf \t\r\n")
    file.seek(0)
    if head.startswith(_POINTER_HEADS):
        raise MediaFailure("refused", f"the file is a playlist that begins with {head[:12]!r}")


def _check_container(container: Any, limits: Limits) -> None:
    if _POINTERS & set(container.format.name.split(",")):
        raise MediaFailure("refused", f"files of format {container.format.name} refer to other files")
    if len(container.streams) > limits.streams:
        raise MediaFailure("too-large", f"the file has {len(container.streams)} streams; the limit is {limits.streams}")


@functools.cache
def decoder_versions() -> dict[str, str]:
    """Return the versions of the decoding libraries, as provenance."""
    names = ("libavcodec", "libavformat", "libavutil", "libswresample", "libswscale")
    libraries = {name: ".".join(map(str, av.library_versions[name])) for name in names}
    return {"av": av.__version__, "opencv": cv2.__version__, "numpy": np.__version__, **libraries}
