"""Statistics and hashes of the rows of a modality, computed block by block."""

import hashlib
from collections.abc import Iterator
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

_BYTES = 1 << 24  # per block


class ColumnStatistics(TypedDict):
    """Statistics of the values (n, d) of a modality.

    Attributes:
        dimensions: d.
        minimum: smallest value.
        maximum: largest value.
        mean: mean of all values.
        standard_deviation: standard deviation of all values.
        zeros: share of the values that are zero.
        whole_numbers: whether all values are whole numbers.
        constant_dimensions: number of columns with the same value in every row.
        zero_rows: number of rows with only zeros.
    """

    dimensions: int
    minimum: float
    maximum: float
    mean: float
    standard_deviation: float
    zeros: float
    whole_numbers: bool
    constant_dimensions: int
    zero_rows: int


def compute_statistics(values: NDArray[np.float32], present: NDArray[np.bool_]) -> ColumnStatistics:
    """Return statistics of the rows of `values` (n, d) where `present` (n,) is true, with sums in double precision.

    At least one row must be present.
    """
    low, high = np.full((2, values.shape[1]), np.inf) * [[1], [-1]]
    total, squares, zeros, zero_rows, integral = 0.0, 0.0, 0, 0, True
    for block in _blocks(values, present):
        low, high = np.minimum(low, block.min(axis=0)), np.maximum(high, block.max(axis=0))
        total += float(block.sum(dtype=np.float64))
        zeros += int((block == 0).sum())
        zero_rows += int((block == 0).all(axis=1).sum())
        integral = integral and bool((block == np.round(block)).all())
    count = int(present.sum()) * values.shape[1]
    mean = total / count
    for block in _blocks(values, present):
        squares += float(np.square(block - mean, dtype=np.float64).sum())
    return {
        "dimensions": int(values.shape[1]),
        "minimum": float(low.min()),
        "maximum": float(high.max()),
        "mean": mean,
        "standard_deviation": float(np.sqrt(squares / count)),
        "zeros": zeros / count,
        "whole_numbers": integral,
        "constant_dimensions": int((low == high).sum()),
        "zero_rows": zero_rows,
    }


def row_hashes(values: NDArray[np.float32]) -> list[bytes]:
    """Return a hash of each row of `values` (n, d), equal for equal rows; a negative zero counts as zero."""
    everywhere = np.ones(len(values), dtype=np.bool_)
    blocks = (np.ascontiguousarray(block + np.float32(0)) for block in _blocks(values, everywhere))
    return [hashlib.blake2b(row, digest_size=16).digest() for block in blocks for row in block]


def _blocks(values: NDArray[np.float32], present: NDArray[np.bool_]) -> Iterator[NDArray[np.float32]]:
    """Yield the present rows in blocks that are not empty."""
    step = max(1, _BYTES // max(1, values[:1].nbytes))
    for start in range(0, len(values), step):
        mask = present[start : start + step]
        if mask.any():
            yield np.asarray(values[start : start + step][mask])
