"""Arrays that are read in blocks of rows and need not be in memory."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_BYTES = 1 << 22  # size of a block
LARGE = 1 << 28
"""Smallest size in bytes of an array that is mapped from its file, if possible, instead of copied into memory."""


@dataclass(frozen=True)
class FeatureRows:
    """Array that is read in blocks of rows.

    Attributes:
        shape: (n,) or (n, d).
        dtype: type of the values.
        blocks: function that returns a new iterator of all rows in order, in blocks.
        mapped: the same values mapped from a file; None if they are not mapped.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    blocks: Callable[[], Iterator[NDArray[Any]]]
    mapped: NDArray[Any] | None = None

    @classmethod
    def of(cls, array: NDArray[Any]) -> "FeatureRows":
        """Build `FeatureRows` from an array (n,) or (n, d) in memory."""
        step = block_rows(array.shape, array.dtype)
        return cls(array.shape, array.dtype, lambda: (array[i : i + step] for i in range(0, len(array), step)))

    def array(self) -> NDArray[Any]:
        """Return all rows (n, ...). A mapped array is first read once, because `blocks` may check the values."""
        if self.mapped is not None:
            for _ in self.blocks():
                pass
            return self.mapped
        values = np.empty(self.shape, self.dtype)
        start = 0
        for block in self.blocks():
            values[start : start + len(block)] = block
            start += len(block)
        return values


@dataclass(frozen=True)
class ModalityRows:
    """Features of one modality; see `FeatureFile` and `Timeline`.

    Attributes:
        pooled: (n, d) float32.
        sequence: (total, d) float32, features over time; None if they were not kept.
        offsets: (n + 1,) int64, first row of each clip in the sequence, followed by total; None if there is no
            sequence.
        times: (total,) float64, start of each row of the sequence, in seconds after the beginning of the file of
            the clip; None if the times were not kept.
    """

    pooled: FeatureRows
    sequence: FeatureRows | None = None
    offsets: NDArray[np.int64] | None = None
    times: FeatureRows | None = None


def is_large(size: int) -> bool:
    """Return whether an array of `size` bytes reaches `LARGE`, the minimum for mapping instead of copying."""
    return size >= max(LARGE, 1)


def block_rows(shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    """Return the number of rows of a block of about 4 MiB; at least 1."""
    return max(1, _BYTES // max(1, int(np.prod(shape[1:], dtype=np.int64)) * dtype.itemsize))


def gathered(pieces: Iterable[NDArray[Any]]) -> Iterator[NDArray[Any]]:
    """Yield the pieces (t_i, ...) in order, joined to blocks of at least 4 MiB; the last block may be smaller."""
    waiting: list[NDArray[Any]] = []
    size = 0
    for piece in pieces:
        waiting.append(piece)
        size += piece.nbytes
        if size >= _BYTES:
            yield np.concatenate(waiting)
            waiting, size = [], 0
    if waiting:
        yield np.concatenate(waiting)


def spread(
    pieces: Iterable[NDArray[np.float32]], present: NDArray[np.bool_], width: int
) -> Iterator[NDArray[np.float32]]:
    """Yield a row (1, d) for each clip: the next piece (d,) for a clip in the mask `present`, else zeros."""
    rows, zeros = iter(pieces), np.zeros((1, width), dtype=np.float32)
    for is_present in present.tolist():
        yield next(rows)[None] if is_present else zeros


class Cursor:
    """Reader of consecutive rows in pieces of any length."""

    def __init__(self, rows: FeatureRows) -> None:
        self._blocks = rows.blocks()
        self._rest = np.empty((0, *rows.shape[1:]), rows.dtype)

    def take(self, count: int) -> NDArray[Any]:
        """Return the next rows (count, ...)."""
        pieces, missing = [self._rest], count - len(self._rest)
        while missing > 0:
            pieces.append(next(self._blocks))
            missing -= len(pieces[-1])
        if len(pieces) > 1:
            self._rest = np.concatenate(pieces)
        taken, self._rest = self._rest[:count], self._rest[count:]
        return taken
