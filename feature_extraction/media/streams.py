"""Streams of sound and video: frames from packets, and times in seconds."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import av

from aadml.feature_extraction.media.inputs import MediaFailure

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

    def frames(self) -> Iterator[Any]:
        """Decode the stream; a truncated packet raises `corrupt`, though a decoder would accept it."""
        for packet in self.container.demux(self.stream):
            if packet.is_corrupt and not self.open_ended:
                raise MediaFailure("corrupt", "the file ends, or is damaged, in the middle of a packet")
            yield from packet.decode()

    def start(self, first: float | None) -> float:
        """Convert the time of the first frame to seconds after the beginning of the file."""
        begin = float((self.container.start_time or 0) / av.time_base)
        return max(0.0, round((first or 0.0) - begin, 6))

    def announced(self) -> float | None:
        """Return the duration in seconds that the file states for the stream; None if the file states no duration."""
        if self.stream.duration is not None:
            return float(self.stream.duration * self.stream.time_base)
        alone = sum(other.type in ("audio", "video") for other in self.container.streams) == 1
        if alone and self.container.duration is not None:
            return float(self.container.duration / av.time_base)
        return None

    def shortfall(self, held: float) -> tuple[str, ...]:
        """Return a warning if the stream is noticeably shorter than the file states."""
        announced = self.announced()
        if announced is None or announced - held <= max(_SECONDS, _SHARE * announced):
            return ()
        what = "sound" if self.stream.type == "audio" else "video"
        return (f"the file states {announced:.1f} s of {what}, but holds {held:.1f} s",)
