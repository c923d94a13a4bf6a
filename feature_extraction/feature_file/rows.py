"""Arrays that need not be in memory: their shape, and their rows in blocks."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_BYTES = 1 << 22  # of a block
LARGE = 1 << 28
"""Bytes from which on an array stays in its file, where the file allows that, and is never copied whole."""


@dataclass(frozen=True)
class FeatureRows:
    """An array of which a block of rows at a time is held.

    Attributes:
        shape: (n,) or (n, d).
        dtype: of its numbers.
        blocks: gives all rows in order, block by block, as often as it is called.
        mapped: the same numbers as they lie in a file, not brought into memory; None where that cannot be.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    blocks: Callable[[], Iterator[NDArray[Any]]]
    mapped: NDArray[Any] | None = None

    @classmethod
    def of(cls, array: NDArray[Any]) -> "FeatureRows":
        """Take an array that is in memory."""
        step = block_rows(array.shape, array.dtype)
        return cls(array.shape, array.dtype, lambda: (array[i : i + step] for i in range(0, len(array), step)))

    def array(self) -> NDArray[Any]:
        """Bring all of it into memory; what is mapped is only looked through."""
        if self.mapped is not None:
            for _ in self.blocks():
                pass
            return self.mapped
        whole = np.empty(self.shape, self.dtype)
        start = 0
        for block in self.blocks():
            whole[start : start + len(block)] = block
            start += len(block)
        return whole


@dataclass(frozen=True)
class ModalityRows:
    """The numbers of one modality of a feature file; see `FeatureFile` and `Timeline`.

    Attributes:
        pooled: (n, d) float32.
        sequence: (total, d) float32, where descriptions over time are kept.
        offsets: (n + 1,) int64 beside it.
        times: (total,) float64 beside it, where they were kept.
    """

    pooled: FeatureRows
    sequence: FeatureRows | None = None
    offsets: NDArray[np.int64] | None = None
    times: FeatureRows | None = None


def is_large(size: int) -> bool:
    """Tell whether an array of `size` bytes stays where it is rather than being copied."""
    return size >= max(LARGE, 1)


def block_rows(shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    """Say how many rows make a block."""
    return max(1, _BYTES // max(1, int(np.prod(shape[1:], dtype=np.int64)) * dtype.itemsize))


def gathered(pieces: Iterable[NDArray[Any]]) -> Iterator[NDArray[Any]]:
    """Join pieces (t_i, ...) to blocks."""
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
    pieces: Iterable[NDArray[np.float32]], there: NDArray[np.bool_], width: int
) -> Iterator[NDArray[np.float32]]:
    """Put the rows (d,) of clips that have something where these clips stand, and zeros elsewhere: (1, d) each."""
    found, nothing = iter(pieces), np.zeros((1, width), dtype=np.float32)
    for has in there.tolist():
        yield next(found)[None] if has else nothing


class Cursor:
    """Takes as many rows at a time as are asked for."""

    def __init__(self, rows: FeatureRows) -> None:
        self._blocks = rows.blocks()
        self._rest = np.empty((0, *rows.shape[1:]), rows.dtype)

    def take(self, count: int) -> NDArray[Any]:
        """Give the next rows."""
        if count > len(self._rest):
            found = [self._rest]
            missing = count - len(self._rest)
            while missing > 0:
                found.append(next(self._blocks))
                missing -= len(found[-1])
            self._rest = np.concatenate(found)
        taken, self._rest = self._rest[:count], self._rest[count:]
        return taken
