"""Features of many clips: rows of one array, which may be in a file, loaded batch by batch."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

BLOCK = 4096
"""Rows per block where all rows are read."""


@dataclass(frozen=True, eq=False)
class StoredRows:
    """Features (n, d) that are rows of an array, in any order; a transformation may be applied to loaded rows.

    Selecting or scaling rows copies no features, since the features of a million clips take gigabytes.

    Attributes:
        array: (m, d) finite numbers, float32 if the numbers are features. The array may be mapped from a file, also
            at an unaligned address.
        index: (n,) int64, position in `array` of each of the n rows, in any order.
        change: transformation of each row of a batch (b, d), such as a scaling; None if rows are not transformed.
    """

    array: NDArray[Any]
    index: NDArray[np.int64]
    change: Callable[[Tensor], Tensor] | None = None

    @classmethod
    def of(cls, array: NDArray[Any]) -> "StoredRows":
        """Return all rows of an array (n, d)."""
        return cls(np.ascontiguousarray(array), np.arange(len(array)))

    def __len__(self) -> int:
        return len(self.index)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows n and width d."""
        return len(self.index), int(self.array.shape[1])

    def select(self, index: Tensor) -> "StoredRows":
        """Return the rows with the numbers `index` (m,), in that order."""
        return replace(self, index=self.index[index.cpu().numpy()])

    def batch(self, index: Tensor) -> Tensor:
        """Load the rows (b, d) with the numbers `index` (b,) into memory, and apply the transformation."""
        # read as bytes, since NumPy would first copy numbers at unaligned addresses of a file
        loaded = np.take(self.array.view(np.uint8), self.index[index.cpu().numpy()], axis=0)
        rows = torch.from_numpy(loaded.view(self.array.dtype))
        return rows if self.change is None else self.change(rows)

    def split(self, size: int) -> Iterator[Tensor]:
        """Yield all rows in order, loaded in blocks (size, d); the last block may be shorter."""
        for start in range(0, len(self), size):
            yield self.batch(torch.arange(start, min(start + size, len(self))))

    def changed(self, change: Callable[[Tensor], Tensor]) -> "StoredRows":
        """Return the same rows with a further transformation, applied after the existing transformation."""
        before = self.change
        return replace(self, change=change if before is None else lambda rows: change(before(rows)))

    @cached_property
    def tensor(self) -> Tensor:
        """All rows (n, d), loaded into memory on first access and cached."""
        loaded = torch.empty(self.shape)
        for start, rows in zip(range(0, len(self), BLOCK), self.split(BLOCK), strict=True):
            loaded[start : start + len(rows)] = rows
        return loaded

    def content(self) -> Iterator[bytes]:
        """Yield the bytes of the rows, for a checksum of the content."""
        for rows in self.split(BLOCK):
            yield rows.numpy().tobytes()
