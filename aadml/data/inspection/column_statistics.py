"""What the values of a modality are like, and what tells equal rows: looked through block by block."""

import hashlib
from collections.abc import Iterator
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

_BYTES = 1 << 24  # of a block


class Figures(TypedDict):
    """What the values of a modality are like."""

    dimensions: int
    minimum: float
    maximum: float
    mean: float
    standard_deviation: float
    zeros: float
    whole_numbers: bool
    constant_dimensions: int
    zero_rows: int


def figures_of(values: NDArray[np.float32], there: NDArray[np.bool_]) -> Figures:
    """Describe the rows (n, d) of the clips that have a modality (n,); sums are taken in double precision."""
    low, high = np.full((2, values.shape[1]), np.inf) * [[1], [-1]]
    total, squares, zeros, zero_rows, whole = 0.0, 0.0, 0, 0, True
    for block in _blocks(values, there):
        low, high = np.minimum(low, block.min(axis=0)), np.maximum(high, block.max(axis=0))
        total += float(block.sum(dtype=np.float64))
        nothing = block == 0
        zeros += int(nothing.sum())
        zero_rows += int(nothing.all(axis=1).sum())
        whole = whole and bool((block == np.round(block)).all())
    count = int(there.sum()) * values.shape[1]
    mean = total / count
    for block in _blocks(values, there):
        squares += float(np.square(block - mean, dtype=np.float64).sum())
    return {
        "dimensions": int(values.shape[1]),
        "minimum": float(low.min()),
        "maximum": float(high.max()),
        "mean": mean,
        "standard_deviation": float(np.sqrt(squares / count)),
        "zeros": zeros / count,
        "whole_numbers": whole,
        "constant_dimensions": int((low == high).sum()),
        "zero_rows": zero_rows,
    }


def row_hashes(values: NDArray[np.float32]) -> list[bytes]:
    """Give n hashes that are equal where rows are; a negative zero is a zero."""
    everywhere = np.ones(len(values), dtype=np.bool_)
    blocks = (np.ascontiguousarray(block + np.float32(0)) for block in _blocks(values, everywhere))
    return [hashlib.blake2b(row, digest_size=16).digest() for block in blocks for row in block]


def _blocks(values: NDArray[np.float32], there: NDArray[np.bool_]) -> Iterator[NDArray[np.float32]]:
    """Take the rows of those who have them, some at a time; a block without any is left out."""
    step = max(1, _BYTES // max(1, values[:1].nbytes))
    for start in range(0, len(values), step):
        own = there[start : start + step]
        if own.any():
            yield np.asarray(values[start : start + step][own])
