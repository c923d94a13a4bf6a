"""Means and covariances of two modalities, block by block, in memory that does not grow with the number of clips."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from aadml.comparison.clips import Clips
from aadml.comparison.features import Modality
from aadml.comparison.stored_rows import StoredRows

Names = tuple[Modality, Modality]

_NUMBERS_AT_ONCE = 1 << 25
"""Numbers of a block in double precision: 256 MiB. The number of blocks changes the last bits of sums."""


@dataclass(frozen=True)
class Covariances:
    """Means and covariances of two modalities of n clips, in double precision, with divisor n - 1 for covariances.

    Attributes:
        means: (d1,) and (d2,).
        first: (d1, d1) covariance of the first modality, with a ridge on the diagonal.
        second: (d2, d2) covariance of the second modality, with the same ridge.
        cross: (d1, d2) cross-covariance over pairs.
    """

    means: tuple[Tensor, Tensor]
    first: Tensor
    second: Tensor
    cross: Tensor


def covariances_of(parts: Sequence[Clips], names: Names, ridge: float) -> Covariances:
    """Compute means and covariances in two passes over the clips.

    Args:
        parts: sets of clips, treated as one set.
        names: names of two modalities that all sets have.
        ridge: constant added to the diagonals of both covariances.
    """
    means = means_of(parts, names)
    d1, d2 = (len(mean) for mean in means)
    first, second, cross = (torch.zeros(shape, dtype=torch.float64) for shape in ((d1, d1), (d2, d2), (d1, d2)))
    for block1, block2, _ in _centered_blocks(parts, names, means):
        first += block1.T @ block1
        second += block2.T @ block2
        cross += block1.T @ block2
    count = max(sum(map(len, parts)) - 1, 1)
    first, second = (
        products / count + ridge * torch.eye(len(products), dtype=torch.float64) for products in (first, second)
    )
    return Covariances(means, first, second, cross / count)


def between_classes(parts: Sequence[Clips], names: Names, means: tuple[Tensor, Tensor]) -> Tensor:
    """Compute the cross-covariance (d1, d2) of clusters block by block; see `algebra.cluster_cross_covariance`.

    Args:
        parts: sets of clips, treated as one set.
        names: names of two modalities that all sets have.
        means: means (d1,) and (d2,) of the two modalities.
    """
    classes = 1 + max(int(part.labels.max()) for part in parts)
    first, second = (torch.zeros(classes, len(mean), dtype=torch.float64) for mean in means)
    sizes = torch.zeros(classes, dtype=torch.float64)
    for block1, block2, labels in _centered_blocks(parts, names, means):
        members = torch.nn.functional.one_hot(labels, classes).double()
        first += members.T @ block1
        second += members.T @ block2
        sizes += members.sum(0)
    return first.T @ second / sizes.square().sum()


def means_of(parts: Sequence[Clips], names: Names) -> tuple[Tensor, Tensor]:
    """Compute the means (d1,) and (d2,) of two modalities over the clips of all sets."""
    totals = [torch.zeros(parts[0].dimension(name), dtype=torch.float64) for name in names]
    for block1, block2, _ in _blocks(parts, names):
        totals[0] += block1.sum(0)
        totals[1] += block2.sum(0)
    count = sum(map(len, parts))
    return totals[0] / count, totals[1] / count


def _centered_blocks(
    parts: Sequence[Clips], names: Names, means: tuple[Tensor, Tensor]
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    for block1, block2, labels in _blocks(parts, names):
        yield block1 - means[0], block2 - means[1], labels


def _blocks(parts: Sequence[Clips], names: Names) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Yield blocks (b, d1) and (b, d2) of two modalities in double precision, with the labels (b,) of the rows.

    A block may contain rows of several sets.
    """
    size = max(1, _NUMBERS_AT_ONCE // sum(parts[0].dimension(name) for name in names))
    labels = torch.cat([part.labels for part in parts])
    for start in range(0, len(labels), size):
        first, second = (_rows(parts, name, start, start + size) for name in names)
        yield first, second, labels[start : start + size]


def _rows(parts: Sequence[Clips], name: Modality, start: int, stop: int) -> Tensor:
    pieces, before = [], 0
    for part in parts:
        features = part.vectors(name)
        low, high = max(start - before, 0), min(stop - before, len(part))
        if low < high:
            rows = torch.arange(low, high)
            pieces.append(features.batch(rows) if isinstance(features, StoredRows) else features[low:high])
        before += len(part)
    return torch.cat(pieces).double()
