"""Streams of sound and video: frames from packets, and times in seconds."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import av

from aadml.feature_extraction.ground.segment import Segment
from aadml.feature_extraction.media.inputs import MediaFailure

LEAD = 1.0
"""Seconds decoded before a segment, since frames refer to earlier frames, and seeking is not exact; a segment that
begins earlier is decoded from the beginning of the file."""

_MARGINS = (LEAD, 10.0)  # the second one for files with key frames that are far apart
_SHARE, _SECONDS = 0.05, 0.25  # share and seconds of the stated length that may be missing without a warning


@dataclass(frozen=True)
class MediaSource:
    """Stream of an opened file, decoded on one thread, since files are decoded in parallel processes.

    Attributes:
        container: the file.
        stream: stream of the file.
        open_ended: whether the file does not state its length, so that its last packet may be short.

    Raises:
        MediaFailure: no decoder is available.
    """

    container: Any
    stream: Any
    open_ended: bool

    def __post_init__(self) -> None:
        """Set the decoder to one thread."""
        if self.stream.codec_context is None:
            raise MediaFailure("corrupt", f"no decoder is available for the codec of its {self.stream.type} stream")
        self.stream.thread_count = 1

    @property
    def beginning(self) -> float:
        """Beginning of the file, in seconds of its time stamps."""
        return float((self.container.start_time or 0) / av.time_base)

    @property
    def first_time(self) -> float:
        """Time stamp of the first frame of the stream, in seconds."""
        return float((self.stream.start_time or 0) * self.stream.time_base)

    def frames(self, since: float = 0.0) -> Iterator[Any]:
        """Decode the stream; a truncated packet raises `corrupt`, though a decoder would accept it.

        Args:
            since: time in seconds after the beginning of the file. The first frame is shown at this time or before, or
                is the first frame of the stream.
        """
        time, has_moved = self.beginning + since, False
        for margin in (margin for margin in _MARGINS if margin < since):
            if not self._seek(time - margin):
                break
            frames, has_moved = self._decoded(settles=True), True
            first = next((frame for frame in frames if frame.time is not None), None)
            if first is not None and first.time <= time:
                yield from chain([first], frames)
                return
        if has_moved and not self._seek(self.beginning - _MARGINS[-1]):
            raise MediaFailure("corrupt", f"no frame can be decoded near {since:g} s")
        yield from self._decoded()

    def _seek(self, time: float) -> bool:
        """Move to a key frame at or before a time; return whether the file can be positioned."""
        try:
            self.container.seek(int(time / self.stream.time_base), stream=self.stream)
        except av.error.FFmpegError:
            return False
        return True

    def _decoded(self, *, settles: bool = False) -> Iterator[Any]:
        """Decode the packets from the current position, or from the next decodable key frame if `settles`."""
        for packet in self.container.demux(self.stream):
            if settles and (packet.is_corrupt or not packet.is_keyframe):
                continue
            if packet.is_corrupt and not self.open_ended:
                raise MediaFailure("corrupt", "the file ends, or is damaged, in the middle of a packet")
            try:
                frames = packet.decode()
            except av.error.InvalidDataError:
                if not settles:
                    raise
                continue
            settles = False
            yield from frames

    def start(self, first: float | None) -> float:
        """Convert the time of the first frame to seconds after the beginning of the file."""
        return max(0.0, round((first or 0.0) - self.beginning, 6))

    def announced(self) -> float | None:
        """Return the duration in seconds that the file states for the stream; None if the file states no duration."""
        if self.stream.duration is not None:
            return float(self.stream.duration * self.stream.time_base)
        alone = sum(other.type in ("audio", "video") for other in self.container.streams) == 1
        if alone and self.container.duration is not None:
            return float(self.container.duration / av.time_base)
        return None

    def check_segment(self, segment: Segment, end: float) -> None:
        """Raise MediaFailure if a segment ends noticeably after the stream, or begins at its end or later.

        Args:
            segment: part of the recording.
            end: end of the stream or of the segment, in seconds after the beginning of the file.
        """
        held = end - segment.start
        if segment.is_whole or (held > 0 and (segment.end == math.inf or not _is_short(held, segment.length))):
            return
        side = f"ends at {segment.end}" if held > 0 else f"begins at {segment.start}"
        raise MediaFailure("outside", f"the segment {side} s, but the {self._content} ends at {end:.3f} s")

    @property
    def _content(self) -> str:
        return "sound" if self.stream.type == "audio" else "video"

    def shortfall(self, held: float) -> tuple[str, ...]:
        """Return a warning if the stream is noticeably shorter than the file states."""
        announced = self.announced()
        if announced is None or not _is_short(held, announced):
            return ()
        return (f"the file states {announced:.1f} s of {self._content}, but holds {held:.1f} s",)


def _is_short(held: float, stated: float) -> bool:
    return stated - held > max(_SECONDS, _SHARE * stated)
