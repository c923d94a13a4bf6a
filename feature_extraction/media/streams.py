"""What sound and picture have in common: packets become frames, and clocks become seconds."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import av

from aadml.feature_extraction.media.inputs import MediaFailure

_SHARE, _SECONDS = 0.05, 0.25  # what a stream may lack of its announced length before that is worth a remark


@dataclass(frozen=True)
class MediaSource:
    """One stream of an opened file.

    Attributes:
        container: the file.
        stream: of the file, to be decoded.
        open_ended: whether the file does not know its own length, so that its last packet may be a short one.
    """

    container: Any
    stream: Any
    open_ended: bool

    def frames(self) -> Iterator[Any]:
        """Decode the stream; a packet that was cut short ends in `corrupt`, where a decoder would make do."""
        for packet in self.container.demux(self.stream):
            if packet.is_corrupt and not self.open_ended:
                raise MediaFailure("corrupt", "the file ends, or is damaged, in the middle of a packet")
            yield from packet.decode()

    def start(self, first: float | None) -> float:
        """Turn the time of the first frame into seconds after the beginning of the file."""
        begin = float((self.container.start_time or 0) / av.time_base)
        return max(0.0, round((first or 0.0) - begin, 6))

    def announced(self) -> float | None:
        """How many seconds the file says the stream lasts; None where it does not say."""
        if self.stream.duration is not None:
            return float(self.stream.duration * self.stream.time_base)
        alone = sum(other.type in ("audio", "video") for other in self.container.streams) == 1
        if alone and self.container.duration is not None:
            return float(self.container.duration / av.time_base)
        return None

    def shortfall(self, held: float) -> tuple[str, ...]:
        """Remark on a stream that lasts noticeably less than the file says."""
        announced = self.announced()
        if announced is None or announced - held <= max(_SECONDS, _SHARE * announced):
            return ()
        what = "sound" if self.stream.type == "audio" else "video"
        return (f"announces {announced:.1f} s of {what}, holds {held:.1f} s",)


def source(container: Any, stream: Any, *, open_ended: bool) -> MediaSource:
    """Prepare a stream to be decoded on one thread: the processes are the parallelism.

    Raises:
        MediaFailure: nothing decodes it.
    """
    if stream.codec_context is None:
        raise MediaFailure("corrupt", f"no decoder knows the codec of its {stream.type} stream")
    stream.thread_count = 1
    return MediaSource(container, stream, open_ended)
