"""Caches of decoded media, and base class of sources that decode stored files."""

from dataclasses import dataclass, replace
from typing import Any, Self, cast

import numpy as np
import torch
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
