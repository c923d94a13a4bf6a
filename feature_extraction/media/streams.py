"""Streams of sound and video: frames from packets, and times in seconds."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import av

from aadml.feature_extraction.ground.segment import Segment
from aadml.feature_extraction.media.damage import Damage
from aadml.feature_extraction.media.inputs import MediaFailure
from aadml.feature_extraction.media.truncation import Ending

LEAD = 1.0
"""Seconds decoded before a segment, since frames refer to earlier frames and seeking is not exact.

A segment that begins within this time is decoded from the beginning of the file.
"""

_MARGINS = (LEAD, 10.0)  # the second one for files with key frames that are far apart
_ROUNDING = 1e-3  # seconds by which times may be rounded
_SHARE, _SECONDS = 0.05, 0.25  # share and seconds of the stated length that may be missing without a warning


@dataclass(frozen=True)
class MediaSource:
    """Stream of an opened file, decoded on one thread, since files are decoded in parallel processes.

    Attributes:
        container: the file.
        stream: stream of the file.
        ending: result of `truncation.ending` for the file.
        tolerant: whether damaged parts are skipped; otherwise they are a failure.

    Raises:
        MediaFailure: no decoder is available for the stream, or the file is truncated and `tolerant` is false.
    """

    container: Any
    stream: Any
    ending: Ending
    tolerant: bool

    def __post_init__(self) -> None:
        """Check the decoder and the end of the file, and set the decoder to one thread."""
        if self.stream.codec_context is None:
            codec = _codec(self.container, self.stream.index)
            raise MediaFailure("unsupported-codec", f"no decoder is available for the {self.stream.type} codec {codec}")
        self.stream.thread_count = 1
        _ = self.damage  # raises MediaFailure for a truncated file

    @cached_property
    def damage(self) -> Damage:
        """Damage that was found so far."""
        return Damage(self.tolerant, self.ending.finding)

    @property
    def beginning(self) -> float:
        """Time stamp of the beginning of the file, in seconds; 0 if unstated."""
        return float((self.container.start_time or 0) / av.time_base)

    @property
    def first_time(self) -> float:
        """Time stamp of the first frame of the stream, in seconds; 0 if unstated."""
        return float((self.stream.start_time or 0) * self.stream.time_base)

    @property
    def stated(self) -> float:
        """Stated duration of the file in seconds; 0 if unstated."""
        return float((self.container.duration or 0) / av.time_base)

    def frames(self, since: float = 0.0) -> Iterator[Any]:
        """Decode the stream; truncated and undecodable packets are skipped as damage.

        Args:
            since: time in seconds after the beginning of the file. The first frame is shown at this time or before, or
                is the first frame of the stream.

        Raises:
            MediaFailure: no decodable frame near `since`, an encrypted stream, or damage that is not tolerated.
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
        """Move to a key frame at or before a time, and return whether the file can be positioned."""
        try:
            self.container.seek(int(time / self.stream.time_base), stream=self.stream)
        except av.error.FFmpegError:
            return False
        return True

    def _decoded(self, *, settles: bool = False) -> Iterator[Any]:
        """Decode the packets from the current position, or from the next decodable key frame if `settles`."""
        for packet in self._packets():
            if settles and (packet.is_corrupt or not packet.is_keyframe):
                continue
            frames = self._frames_of(packet, counts=not settles)
            settles = settles and frames is None
            yield from frames or ()

    def _packets(self) -> Iterator[Any]:
        """Read the packets up to the end, or up to the point where reading fails."""
        try:
            for packet in self.container.demux(self.stream):
                if packet.has_sidedata("encryption_info"):
                    raise MediaFailure("encrypted", f"the {self.stream.type} stream is encrypted")
                self.damage.packets += packet.size > 0
                yield packet
        except av.error.FFmpegError as error:
            self.damage.add(f"reading stops after {self.damage.packets:,} packets ({_described(error)})")
            last = av.Packet()  # an empty packet ends the stream
            last.stream, last.time_base = self.stream, self.stream.time_base
            yield last

    def _frames_of(self, packet: Any, *, counts: bool) -> list[Any] | None:
        """Decode a packet into frames.

        Return None if decoding fails. If `counts` is also true, the failure is recorded as damage.
        """
        if packet.is_corrupt and not self.ending.open_ended:  # a decoder would accept the packet
            cause = "the file ends, or is damaged, in the middle of a packet"
        else:
            try:
                return list(packet.decode())
            except av.error.FFmpegError as error:
                cause = _described(error)
        if counts:
            self.damage.lost += packet.size > 0
            self.damage.add(cause)
        return None

    def start(self, first: float | None) -> float:
        """Convert the time `first` (None is read as 0) to seconds after the beginning of the file, at least 0."""
        return max(0.0, round((first or 0.0) - self.beginning, 6))

    def announced(self) -> float | None:
        """Return the stated duration of the stream in seconds; None if unstated.

        For a stream without a stated duration, the duration of the file is returned, unless the file has another stream
        of sound or video.
        """
        if self.stream.duration is not None:
            return float(self.stream.duration * self.stream.time_base)
        alone = sum(other.type in ("audio", "video") for other in self.container.streams) == 1
        return self.stated if alone and self.stated else None

    def check_segment(self, segment: Segment, begin: float, end: float) -> None:
        """Check that a segment is a part of the stream.

        If the stream begins later, or if another stream of the recording lasts longer, an undamaged stream with half of
        the segment is sufficient. The missing seconds are recorded for `remarks`.

        Args:
            segment: part of the recording.
            begin: beginning of the decoded stream, in seconds after the beginning of the file.
            end: end of the decoded stream, in seconds after the beginning of the file.

        Raises:
            MediaFailure: the stream has nothing of the segment, or noticeably less than the segment.
        """
        held = min(end, segment.end) - max(begin, segment.start)
        if segment.is_whole or (held > 0 and (segment.end == math.inf or not _is_short(held, segment.length))):
            return
        ends = end <= segment.start or _is_short(min(end, segment.end) - segment.start, segment.length)
        is_inside = segment.end <= self.stated + _ROUNDING and not _is_short(end, self.announced() or 0.0)
        if 2 * held >= segment.length and (is_inside or not ends):
            self.damage.missing = segment.length - held
            return
        side = f"ends at {segment.end}" if ends == (held > 0) else f"begins at {segment.start}"
        limit = f"ends at {end:.3f}" if ends else f"begins at {begin:.3f}"
        raise MediaFailure("outside", f"the segment {side} s, but the {self._content} {limit} s")

    @property
    def _content(self) -> str:
        return "sound" if self.stream.type == "audio" else "video"

    def remarks(self, end: float, lost: float, segment: Segment, *, complete: bool) -> tuple[str, ...]:
        """Return a warning on damage, or on a stream noticeably shorter than stated or than its segment; otherwise ().

        Args:
            end: length of the clip in seconds, including lost parts.
            lost: seconds of the clip that were lost.
            segment: part of the recording; the clip contains only this part.
            complete: whether the clip has all wanted seconds, so that the rest of the stream is not needed.

        Raises:
            MediaFailure: less than half of the undamaged length was decoded.
        """
        complete = complete or segment.end < math.inf
        if self.damage.cause and (segment.is_whole or lost > _ROUNDING):  # packets before a segment may be damaged
            length = end if complete else self._length(end - lost, segment.start)
            return (self.damage.remark(self._content, end - lost, length),)
        if self.damage.missing:
            held = segment.length - self.damage.missing
            return (f"the segment lasts {segment.length:.1f} s, but contains {held:.1f} s of {self._content}",)
        announced = None if complete else self.announced()
        if announced is None or not _is_short(end, announced - segment.start):
            return ()
        return (f"the file states {announced:.1f} s of {self._content}, but contains {segment.start + end:.1f} s",)

    def gap(self, jump: float | None, elapsed: float, estimate: float) -> float:
        """Return the seconds of the gap that damage leaves between two frames.

        Args:
            jump: seconds from the end of the frame before the gap to the time of the frame after the gap; None if
                one of these times is unknown.
            elapsed: seconds from the first frame to the gap.
            estimate: duration of the skipped packets in seconds, if each packet is as long as the frame before the
                gap.
        """
        if jump is None or not self.damage.timed:
            return estimate
        announced = self.announced()
        return max(0.0, min(jump, estimate if announced is None else announced - elapsed))

    def _length(self, held: float, start: float) -> float:
        """Return the seconds from `start` to the end of the undamaged stream.

        The length is the stated length, or an estimate from the `held` seconds that were decoded.
        """
        if self.ending.share:
            return held / (1 - self.ending.share)
        stated = (self.announced() or self.stated) - start
        return stated if stated > 0 and self.damage.timed else held / self.damage.intact


def _is_short(held: float, stated: float) -> bool:
    return stated - held > max(_SECONDS, _SHARE * stated)


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
