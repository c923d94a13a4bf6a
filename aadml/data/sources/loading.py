"""Options of decoding: caches and processes."""

from dataclasses import dataclass, replace
from typing import Any, Literal, Self, cast

from torch import Tensor

from aadml.data.sources.array_cache import ArrayCache

LogMelBy = Literal["processor", "device"]
"""Where the spectrograms of sounds are computed."""


class ItemSource:
    """Base of sources whose `items` (n,) int64 are the numbers of stored files."""

    items: Tensor

    def __len__(self) -> int:
        return len(self.items)

    def select(self, index: Tensor) -> Self:
        """Return the source with only the items `index` (m,)."""
        return cast(Self, replace(cast(Any, self), items=self.items[index]))


@dataclass(frozen=True)
class Loading:
    """Caches of decoded media, and the number of processes that decode them.

    Attributes:
        memory: size limit of the cache in memory, in bytes; other media are read from disk or decoded each time.
        disk: cache that outlives a training, by the content of the files; None for no cache.
        workers: processes that decode for later steps; 0 decodes in this process, between two steps.
        log_mel: "processor" computes spectrograms once, when sound is decoded. "device" computes them for each batch;
            then sounds are cached in memory, and nothing is cached on disk.
    """

    memory: int = 1 << 30
    disk: ArrayCache | None = None
    workers: int = 0
    log_mel: LogMelBy = "processor"

    @classmethod
    def of(cls, *, memory_mib: int, disk_mib: int, workers: int, log_mel: LogMelBy = "processor") -> "Loading":
        """Return the loading for the options of a method."""
        return cls(memory_mib << 20, ArrayCache(disk_mib << 20) if disk_mib else None, workers, log_mel)

    def without_disk(self) -> "Loading":
        """Return the same loading without a cache on disk."""
        return replace(self, disk=None)

    def elsewhere(self) -> "Loading":
        """Return the loading for decoding processes, without a cache in memory."""
        return replace(self, memory=0, workers=0)

    def fits(self, count: int, size: int) -> bool:
        """Return whether `count` values of about `size` bytes fit into memory."""
        return count * size <= self.memory
