"""How what a network reads of sound and video comes: what of it is kept, and who decodes it."""

from dataclasses import dataclass, replace
from typing import Literal

from aadml.data.sources.array_cache import ArrayCache

LogMelBy = Literal["processor", "device"]
"""Who makes the spectrograms of sounds."""


@dataclass(frozen=True)
class Loading:
    """How decoded media are kept, and how many processes decode them.

    Attributes:
        memory: bytes kept in memory; what does not fit is read from disk or made again each time.
        disk: where it is kept beyond one training, by the content of its file; None keeps nothing.
        workers: processes that decode for the steps to come; 0 decodes in this one, between two steps.
        log_mel: who makes spectrograms: the "processor" once, where sound is decoded, or the "device" of each batch, in
            which case sounds are what is kept in memory, and nothing is kept on disk.
    """

    memory: int = 1 << 30
    disk: ArrayCache | None = None
    workers: int = 0
    log_mel: LogMelBy = "processor"

    @classmethod
    def of(cls, *, memory_mib: int, disk_mib: int, workers: int, log_mel: LogMelBy = "processor") -> "Loading":
        """Make it of the options of a method."""
        return cls(memory_mib << 20, ArrayCache(disk_mib << 20) if disk_mib else None, workers, log_mel)

    def without_disk(self) -> "Loading":
        """Keep nothing on disk."""
        return replace(self, disk=None)

    def elsewhere(self) -> "Loading":
        """Hold nothing in memory: for the processes that decode."""
        return replace(self, memory=0, workers=0)
