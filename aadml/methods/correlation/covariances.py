"""Means and covariances of two modalities of clips, block by block: a million clips need no more memory than a few."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from aadml.comparison.clips import Clips
from aadml.comparison.features import Modality
from aadml.comparison.stored_rows import StoredRows

Names = tuple[Modality, Modality]

_NUMBERS_AT_ONCE = 1 << 25
"""Of a block, in double precision: 256 MiB. Sums over several blocks differ from those over one in the last bits."""


@dataclass(frozen=True)
class Covariances:
    """How two modalities of n clips vary, in double precision; sums of products are divided by n - 1.

    Attributes:
        means: (d1,) and (d2,).
        first: (d1, d1) covariance of the first modality, `ridge` on its diagonal.
        second: (d2, d2) of the second.
        cross: (d1, d2) cross-covariance over pairs.
    """

    means: tuple[Tensor, Tensor]
    first: Tensor
    second: Tensor
    cross: Tensor


def covariances_of(parts: Sequence[Clips], names: Names, ridge: float) -> Covariances:
    """Look through clips twice: for the means, and for the products of the distances from them.

    Args:
        parts: sets of clips, taken as one.
        names: of two modalities that all of them have.
        ridge: added to the diagonals of both covariances.
    """
    means = means_of(parts, names)
    wide, high = (len(mean) for mean in means)
    first, second, cross = (
        torch.zeros(shape, dtype=torch.float64) for shape in ((wide, wide), (high, high), (wide, high))
    )
    for one, other, _ in centered_blocks(parts, names, means):
        first += one.T @ one
        second += other.T @ other
        cross += one.T @ other
    count = max(sum(map(len, parts)) - 1, 1)
    ridges = (ridge * torch.eye(len(mean), dtype=torch.float64) for mean in means)
    first, second = (products / count + own for products, own in zip((first, second), ridges, strict=True))
    return Covariances(means, first, second, cross / count)


def between_classes(parts: Sequence[Clips], names: Names, means: tuple[Tensor, Tensor]) -> Tensor:
    """Give the cross-covariance (d1, d2) of clusters: `algebra.cluster_cross_covariance`, block by block.

    Args:
        parts: sets of clips, taken as one.
        names: of two modalities.
        means: of these (d1,), (d2,).
    """
    classes = 1 + max(int(part.labels.max()) for part in parts)
    first, second = (torch.zeros(classes, len(mean), dtype=torch.float64) for mean in means)
    sizes = torch.zeros(classes, dtype=torch.float64)
    for one, other, labels in centered_blocks(parts, names, means):
        members = torch.nn.functional.one_hot(labels, classes).double()
        first += members.T @ one
        second += members.T @ other
        sizes += members.sum(0)
    return first.T @ second / sizes.square().sum()


def means_of(parts: Sequence[Clips], names: Names) -> tuple[Tensor, Tensor]:
    """Give the mean of each column of two modalities (d1,), (d2,)."""
    totals = [torch.zeros(parts[0].dimension(name), dtype=torch.float64) for name in names]
    for one, other, _ in _blocks(parts, names):
        totals[0] += one.sum(0)
        totals[1] += other.sum(0)
    count = sum(map(len, parts))
    return totals[0] / count, totals[1] / count


def centered_blocks(
    parts: Sequence[Clips], names: Names, means: tuple[Tensor, Tensor]
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Take clips without their means, block by block: (b, d1), (b, d2), labels (b,)."""
    for one, other, labels in _blocks(parts, names):
        yield one - means[0], other - means[1], labels


def _blocks(parts: Sequence[Clips], names: Names) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Take clips block by block, in double precision; a block goes on from one set into the next."""
    size = max(1, _NUMBERS_AT_ONCE // sum(parts[0].dimension(name) for name in names))
    labels = torch.cat([part.labels for part in parts])
    for start in range(0, len(labels), size):
        first, second = (_rows(parts, name, start, start + size) for name in names)
        yield first, second, labels[start : start + size]


def _rows(parts: Sequence[Clips], name: Modality, start: int, stop: int) -> Tensor:
    found, before = [], 0
    for part in parts:
        features = part.vectors(name)
        low, high = max(start - before, 0), min(stop - before, len(part))
        if low < high:
            rows = torch.arange(low, high)
            found.append(features.batch(rows) if isinstance(features, StoredRows) else features[low:high])
        before += len(part)
    return torch.cat(found).double()
