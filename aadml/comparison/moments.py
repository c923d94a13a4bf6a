"""Mean, standard deviation and largest absolute value of each column of features, in double precision."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from aadml.comparison.features import Matrix

_NUMBERS_AT_ONCE = 1 << 22  # 32 MiB in double precision


@dataclass(frozen=True)
class ColumnMoments:
    """Statistics of the columns of features (n, d), in double precision.

    Attributes:
        mean: (d,).
        deviation: (d,) standard deviation of the population.
        largest: (d,) largest absolute value.
    """

    mean: Tensor
    deviation: Tensor
    largest: Tensor


def moments(values: Matrix) -> ColumnMoments:
    """Compute the statistics of features (n, d), n at least 1, in two passes: mean, then squared deviations."""
    total, largest, squares = torch.zeros(3, values.shape[1], dtype=torch.float64)
    for part in parts(values):
        exact = part.double()
        total += exact.sum(0)
        largest = torch.maximum(largest, exact.abs().amax(0))
    mean = total / len(values)
    for part in parts(values):
        squares += (part.double() - mean).square_().sum(0)
    return ColumnMoments(mean, (squares / len(values)).sqrt(), largest)


def parts(values: Matrix) -> Iterator[Tensor]:
    """Yield the rows in order, in blocks (b, d) of one row or of at most 32 MiB in double precision."""
    yield from values.split(max(1, _NUMBERS_AT_ONCE // values.shape[1]))
