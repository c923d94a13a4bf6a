"""Caches of decoded media, and base classes of sources that decode stored files."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aadml.data.sources.array_cache import ArrayCache


@dataclass(frozen=True)
class Loading:
    """Caches of decoded media.

    Attributes:
        memory: size limit of the cache in memory, in bytes; media beyond the limit are read from disk or decoded
            again.
        disk: cache on disk, which later runs reuse for files with the same content; None for no cache.
    """

    memory: int = 1 << 30
    disk: ArrayCache | None = None

    @classmethod
    def of(cls, *, memory_mib: int, disk_mib: int) -> "Loading":
        """Return caches with these size limits in MiB; without a cache on disk if `disk_mib` is 0."""
        return cls(memory_mib << 20, ArrayCache(disk_mib << 20) if disk_mib else None)


class ItemSource:
    """Base of sources whose `items` (n,) int64 are the numbers of stored files."""

    items: Tensor

    def __len__(self) -> int:
        return len(self.items)

    def select(self, index: Tensor) -> Self:
        """Return the source with only the items `index` (m,)."""
        return cast(Self, replace(cast(Any, self), items=self.items[index]))

    def distinct(self) -> tuple[Tensor, Tensor]:
        """Return the first item of each file, and the place of each item's file among the files.

        Returns:
            Indices (f,) of the first items, in the order of the file numbers, and the position (n,) of each item's
            file in that order.
        """
        _, first, place = np.unique(self.items.numpy(), return_index=True, return_inverse=True)
        return torch.from_numpy(first), torch.from_numpy(place)


class CachedItems(ItemSource, ABC):
    """Base of sources that compute items from decoded files and cache the items in memory.

    Attributes:
        loading: caches of decoded media.
        cached: number of a file -> values computed from the file; shared by all sources selected from one source.
    """

    loading: Loading
    cached: dict[int, Any]

    @property
    @abstractmethod
    def failures(self) -> dict[str, str]:
        """Reasons why files could not be decoded, by the name of the file (see `MediaFiles.name`)."""

    @abstractmethod
    def decoded(self, files: Sequence[int], /) -> Sequence[NDArray[Any] | None]:
        """Return the arrays of the files with indices `files`, with None for a file that cannot be decoded."""

    def arrays(self, index: Tensor) -> dict[int, NDArray[Any] | None]:
        """Return the arrays of the files of the items `index` (b,), except for files with values in `cached`.

        Returns:
            Dict of arrays (see `decoded`), with the numbers of the files as keys.
        """
        missing = [file for file in self.items[index].unique().tolist() if file not in self.cached]
        return dict(zip(missing, self.decoded(missing), strict=True))

    def keep(self, file: int, values: Any, size: int) -> None:
        """Cache the values of a file if all cached files, counted at `size` bytes each, stay within the limit."""
        if (len(self.cached) + 1) * size <= self.loading.memory:
            self.cached[file] = values
