"""Features of more clips than one copies: rows of one array, which may lie in a file, taken a batch at a time."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

BLOCK = 4096
"""Rows that are taken together where all of them are looked through."""


@dataclass(frozen=True, eq=False)
class StoredRows:
    """Features (n, d) that are rows of an array, in any order, each changed as it is taken.

    Selecting rows, or laying a scaling over them, copies no features: a million clips are gigabytes.

    Attributes:
        array: (m, d) finite numbers, float32 where they are features; it may be mapped from a file, at any address.
        index: (n,) int64, which rows of it, in order.
        change: of a batch (b, d), row by row (a scaling); None leaves it as it is.
    """

    array: NDArray[Any]
    index: NDArray[np.int64]
    change: Callable[[Tensor], Tensor] | None = None

    @classmethod
    def of(cls, array: NDArray[Any]) -> "StoredRows":
        """Take all rows of an array (n, d)."""
        return cls(np.ascontiguousarray(array), np.arange(len(array)))

    def __len__(self) -> int:
        return len(self.index)

    @property
    def shape(self) -> tuple[int, int]:
        """Give n and d."""
        return len(self.index), int(self.array.shape[1])

    def select(self, index: Tensor) -> "StoredRows":
        """Return the rows `index` (m,), in that order."""
        return replace(self, index=self.index[index.cpu().numpy()])

    def batch(self, index: Tensor) -> Tensor:
        """Take the rows `index` (b,) into memory: (b, d)."""
        # as bytes, since a file may hold numbers at odd addresses, of which NumPy would first align a copy
        taken = np.take(self.array.view(np.uint8), self.index[index.cpu().numpy()], axis=0)
        rows = torch.from_numpy(taken.view(self.array.dtype))
        return rows if self.change is None else self.change(rows)

    def split(self, size: int) -> Iterator[Tensor]:
        """Take all rows into memory, `size` at a time and in order."""
        for start in range(0, len(self), size):
            yield self.batch(torch.arange(start, min(start + size, len(self))))

    def changed(self, change: Callable[[Tensor], Tensor]) -> "StoredRows":
        """Return the same rows, changed once more as they are taken."""
        before = self.change
        return replace(self, change=change if before is None else lambda rows: change(before(rows)))

    @cached_property
    def tensor(self) -> Tensor:
        """All rows in memory (n, d), for what can do with nothing less; they are then kept."""
        whole = torch.empty(self.shape)
        for start, rows in zip(range(0, len(self), BLOCK), self.split(BLOCK), strict=True):
            whole[start : start + len(rows)] = rows
        return whole

    def content(self) -> Iterator[bytes]:
        """Give the bytes of the rows, by which they can be told from others."""
        for rows in self.split(BLOCK):
            yield rows.numpy().tobytes()
