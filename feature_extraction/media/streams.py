"""Streams of sound and video: frames from packets, and times in seconds."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import av

from aadml.feature_extraction.media.damage import Damage
from aadml.feature_extraction.media.inputs import MediaFailure
from aadml.feature_extraction.media.truncation import Ending

_SHARE, _SECONDS = 0.05, 0.25  # share and seconds of the stated length that may be missing without a remark


@dataclass(frozen=True)
class MediaSource:
    """Stream of an opened file, decoded on one thread, since files are decoded in parallel processes.

    Attributes:
        container: the file.
        stream: stream of the file.
        ending: end of the file, compared with its structure.
        tolerant: whether damaged parts are skipped; otherwise they are a failure.

    Raises:
        MediaFailure: no decoder is available, or the file is damaged.
    """

    container: Any
    stream: Any
    ending: Ending
    tolerant: bool

    def __post_init__(self) -> None:
        """Set the decoder to one thread."""
        if self.stream.codec_context is None:
            codec = _codec(self.container, self.stream.index)
            raise MediaFailure(
                "unsupported-codec", f"no decoder is available for its {self.stream.type} codec: {codec}"
            )
        self.stream.thread_count = 1
        _ = self.damage  # raises MediaFailure for a truncated file

    @cached_property
    def damage(self) -> Damage:
        """Damage that was found so far."""
        return Damage(self.tolerant, self.ending.finding)

    def frames(self) -> Iterator[Any]:
        """Decode the stream; truncated packets, and packets that cannot be decoded, are skipped as damage."""
        for packet in self._packets():
            yield from self._decoded(packet)

    def _packets(self) -> Iterator[Any]:
        """Read the packets up to the end, or up to the point where reading fails."""
        try:
            for packet in self.container.demux(self.stream):
                if packet.has_sidedata("encryption_info"):
                    raise MediaFailure("encrypted", f"its {self.stream.type} stream is encrypted")
                self.damage.packets += packet.size > 0
                yield packet
        except av.error.FFmpegError as error:
            self.damage.add(f"reading stops after {self.damage.packets:,} packets ({_described(error)})")
            last = av.Packet()  # an empty packet ends the stream
            last.stream, last.time_base = self.stream, self.stream.time_base
            yield last

    def _decoded(self, packet: Any) -> list[Any]:
        if packet.is_corrupt and not self.ending.open_ended:  # a decoder would accept such a packet
            cause = "the file ends, or is damaged, in the middle of a packet"
        else:
            try:
                return list(packet.decode())
            except av.error.FFmpegError as error:
                cause = _described(error)
        self.damage.lost += packet.size > 0
        self.damage.add(cause)
        return []

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

    def remarks(self, end: float, lost: float, *, complete: bool) -> tuple[str, ...]:
        """Return a remark on damage, or if the stream is noticeably shorter than the file states.

        Args:
            end: seconds of the clip.
            lost: seconds within the clip that were lost.
            complete: whether the clip has all seconds that are wanted, so that the rest of the stream is not needed.

        Raises:
            MediaFailure: less than half of the length was decoded.
        """
        kind = "sound" if self.stream.type == "audio" else "video"
        if self.damage.cause:
            return (self.damage.remark(kind, end - lost, end if complete else self._length(end - lost)),)
        announced = None if complete else self.announced()
        if announced is None or announced - end <= max(_SECONDS, _SHARE * announced):
            return ()
        return (f"the file states {announced:.1f} s of {kind}, but holds {end:.1f} s",)

    def gap(self, jump: float | None, elapsed: float, estimate: float) -> float:
        """Return the seconds that damage leaves between two frames.

        Args:
            jump: gap between the times of the frames; None if a time is unknown.
            elapsed: seconds from the first frame to the gap.
            estimate: duration of the skipped packets, if each is as long as the frame before.
        """
        if jump is None or not self.damage.timed:
            return estimate
        announced = self.announced()
        return max(0.0, min(jump, estimate if announced is None else announced - elapsed))

    def _length(self, held: float) -> float:
        """Return the length in seconds without the damage: the stated length, or an estimate from what is held."""
        if self.ending.share:
            return held / (1 - self.ending.share)
        stated = self.announced() or (self.container.duration or 0) / av.time_base
        return stated if stated and self.damage.timed else held / self.damage.intact


def _codec(container: Any, index: int) -> str:
    """Return FFmpeg's description of the codec of a stream that has no decoder."""
    level = av.logging.get_level()
    av.logging.set_level(av.logging.INFO)  # the description is a message of the log
    try:
        (line,) = (line for line in container.dumps_format().splitlines() if f"Stream #0:{index}" in line)
    finally:
        av.logging.set_level(level)
    return str(line.split(": ", 2)[2].split(",")[0])


def _described(error: av.error.FFmpegError) -> str:
    return f"{type(error).__name__}: {error.strerror}"
