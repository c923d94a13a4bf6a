"""Mean and spread of each column of features, block by block in double precision."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from aadml.comparison.features import Matrix

_NUMBERS_AT_ONCE = 1 << 22
"""Of which statistics are taken in double precision: 32 MiB."""


@dataclass(frozen=True)
class Moments:
    """What the columns of features (n, d) are like, in double precision.

    Attributes:
        mean: (d,).
        deviation: (d,) the standard deviation, of the whole population.
        largest: (d,) the largest absolute value.
    """

    mean: Tensor
    deviation: Tensor
    largest: Tensor


def moments(values: Matrix) -> Moments:
    """Look through features (n, d), n at least 1, twice: for the mean, and for the squares of the distances from it."""
    total, largest, squares = torch.zeros(3, values.shape[1], dtype=torch.float64)
    for part in parts(values):
        exact = part.double()
        total += exact.sum(0)
        largest = torch.maximum(largest, exact.abs().amax(0))
    mean = total / len(values)
    for part in parts(values):
        squares += (part.double() - mean).square_().sum(0)
    return Moments(mean, (squares / len(values)).sqrt(), largest)


def parts(values: Matrix) -> Iterator[Tensor]:
    """Take rows together that make 32 MiB in double precision, in order."""
    yield from values.split(max(1, _NUMBERS_AT_ONCE // values.shape[1]))
