"""Options of decoding, and base classes of sources that decode stored files."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, Self, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aadml.data.sources.array_cache import ArrayCache

LogMelBy = Literal["processor", "device"]
"""Place of the computation of spectrograms."""


@dataclass(frozen=True)
class Loading:
    """Caches of decoded media, and the number of processes that decode them.

    Attributes:
        memory: size limit of the cache in memory, in bytes; other media are read from disk or decoded each time.
        disk: cache that outlives a run, by the content of the files; None for no cache.
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


class ItemSource:
    """Base of sources whose `items` (n,) int64 are the numbers of stored files."""

    items: Tensor

    def __len__(self) -> int:
        return len(self.items)

    def select(self, index: Tensor) -> Self:
        """Return the source with only the items `index` (m,)."""
        return cast(Self, replace(cast(Any, self), items=self.items[index]))

    def distinct(self) -> tuple[Tensor, Tensor]:
        """Return the first item (f,) of each file, in file order, and each item's position (n,) in that order."""
        _, first, place = np.unique(self.items.numpy(), return_index=True, return_inverse=True)
        return torch.from_numpy(first), torch.from_numpy(place)


class Decoder(Protocol):
    """Decoder of stored files."""

    @property
    def failures(self) -> dict[str, str]:
        """Reasons why files could not be decoded, by path."""

    def decoded(self, files: Sequence[int], /) -> Sequence[NDArray[Any] | None]:
        """Return the arrays of the files with indices `files`; None if decoding fails."""


class CachedItems(ItemSource, ABC):
    """Base of sources that make items from decoded files and cache them in memory.

    Attributes:
        loading: caches and processes of decoding.
        cached: number of a file -> values made from the file; shared by all sources selected from one source.
        ahead: number of a file -> array that was decoded ahead for the next batch; shared like `cached`.
    """

    loading: Loading
    cached: dict[int, Any]
    ahead: dict[int, NDArray[Any] | None]

    @property
    @abstractmethod
    def failures(self) -> dict[str, str]:
        """Reasons why files could not be decoded, by path."""

    @abstractmethod
    def decoded(self, files: Sequence[int], /) -> Sequence[NDArray[Any] | None]:
        """Return the arrays of the files with indices `files`; None if decoding fails."""

    @abstractmethod
    def elsewhere(self) -> Decoder | None:
        """Return a decoder of the same files for another process, or None if processes would not help."""

    def missing(self, index: Tensor) -> list[int]:
        """Return the files of the items `index` (b,) that are not in memory."""
        return [file for file in self.items[index].unique().tolist() if file not in self.cached]

    def arrays(self, index: Tensor) -> dict[int, NDArray[Any] | None]:
        """Return the arrays of the missing files of the items `index` (b,), decoded now unless decoded ahead."""
        missing = self.missing(index)
        rest = [file for file in missing if file not in self.ahead]
        self.ahead.update(zip(rest, self.decoded(rest), strict=True))
        arrays = {file: self.ahead[file] for file in missing}
        self.ahead.clear()
        return arrays

    def keep(self, file: int, values: Any, size: int) -> None:
        """Cache the values of a file if they fit into memory; files of one set have similar sizes, in bytes."""
        if (len(self.cached) + 1) * size <= self.loading.memory:
            self.cached[file] = values
