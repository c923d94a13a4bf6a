"""Damage of a stream: its cause, the packets that cannot be decoded, and the share of the length that is lost."""

from aadml.feature_extraction.media.inputs import MediaFailure

_LEAST = 0.5  # share of the stated length that must be decoded


class Damage:
    """Record of the parts of one stream that cannot be decoded.

    Args:
        tolerated: whether damaged parts are skipped; otherwise any damage is a failure.
        cause: damage that is known before decoding; "" for none.

    Attributes:
        cause: first damage that was found; "" for an undamaged stream.
        packets: number of packets that were read.
        lost: number of packets that were skipped.
        timed: whether the times of the stream agree with its samples.
        missing: seconds of the segment before the beginning of the stream, or after its end.

    Raises:
        MediaFailure: `cause` is not empty, and damage is not tolerated.
    """

    def __init__(self, tolerated: bool, cause: str = "") -> None:
        self._tolerated = tolerated
        self.cause = ""
        self.packets, self.lost, self.timed, self.missing = 0, 0, True, 0.0
        if cause:
            self.add(cause)

    def add(self, cause: str) -> None:
        """Record damage; only the first `cause` is kept.

        Raises:
            MediaFailure: damage is not tolerated.
        """
        self.cause = self.cause or cause
        if not self._tolerated:
            raise MediaFailure("corrupt", self.cause)

    @property
    def intact(self) -> float:
        """Share of the read packets that were not skipped; 1 if no packet was read."""
        return 1 - self.lost / max(1, self.packets)

    def remark(self, kind: str, held: float, length: float) -> str:
        """Describe the damage in one line.

        Args:
            kind: "sound" or "video".
            held: seconds that were decoded.
            length: seconds that the undamaged stream would have.

        Raises:
            MediaFailure: less than half of the length was decoded.
        """
        share = 1 - min(1.0, held / length) if length else 1.0
        packets = f" ({self.lost:,} of {self.packets:,} packets)" if self.lost else ""
        remark = f"{share:.1%} of {length:.1f} s of {kind} is lost{packets}: {self.cause}"
        if share > _LEAST:
            raise MediaFailure("corrupt", remark)
        return remark
