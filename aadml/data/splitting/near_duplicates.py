"""Rows of one split that stand in another, exactly or up to noise: far nearer than neighbors of one split ever are."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from aadml.comparison.features import Matrix
from aadml.comparison.moments import moments

SHARE = 0.15
"""Rows nearer than this share of the usual distance between nearest neighbors are called duplicates."""

SAMPLE = 1000
"""Rows of a set that decide what distance is usual; fewer, but at least `_FEWEST`, where they would have more than
`_DISTANCES` to the others."""
_FEWEST, _DISTANCES = 100, 100_000_000
_BLOCK = 512
_NUMBERS_AT_ONCE = 1 << 22
"""Of a set that are held in double precision: 32 MiB."""

Pair = tuple[int, int, float]
"""Row, row of the other set, and their distance as a share of the usual one."""


def near_duplicates(
    rows: Matrix, known: Matrix, *, share: float = SHARE, scaled: bool = True, among: Matrix | None = None
) -> list[Pair]:
    """Find the rows that stand in another set, exactly or nearly.

    Columns are brought to the spread that they have in `known`, unless they share a unit. The usual distance is the
    median, over at most SAMPLE rows of `known` or of a larger set, of the distance to the nearest other row.

    Args:
        rows: (n, d) of the split in question.
        known: (m, d) of the other split.
        share: of the usual distance, below which two rows are one.
        scaled: whether columns are brought to one spread.
        among: (k, d) rows between which distances are usual; by default `known`, among which a few rows lie far apart.

    Returns:
        A pair for each row that has such a neighbor, nearest first.
    """
    if not len(rows) or not len(known):
        return []
    found = moments(known)
    scale = torch.ones_like(found.mean)
    if scaled:
        scale = torch.where(found.deviation > 0, found.deviation, scale)
    # far from the origin, distances would be rounded away
    one, other, wide = (
        _Scaled(values, found.mean, scale) for values in (rows, known, known if among is None else among)
    )
    usual = _usual(wide)
    distance, nearest = _nearest(one, other)
    pairs = [
        (i, int(nearest[i]), float(distance[i] / usual) if usual else 0.0)
        for i in (distance <= share * usual).nonzero()[:, 0].tolist()
    ]
    return sorted(pairs, key=lambda pair: pair[2])


def usual_distance(known: Matrix) -> float:
    """Give the median distance of a row to the nearest row that differs from it; 0 where all are the same."""
    width = known.shape[1]
    return _usual(_Scaled(known, torch.zeros(width, dtype=torch.float64), torch.ones(width, dtype=torch.float64)))


@dataclass(frozen=True)
class _Scaled:
    """Rows (n, d) brought to a center and a scale as they are taken, in double precision."""

    values: Matrix
    center: Tensor
    scale: Tensor

    def __len__(self) -> int:
        return len(self.values)

    def at(self, index: Tensor) -> Tensor:
        """Take some rows."""
        taken = self.values[index] if isinstance(self.values, Tensor) else self.values.batch(index)
        return (taken.double() - self.center) / self.scale

    def blocks(self) -> Iterator[tuple[int, Tensor]]:
        """Take all rows, some at a time and in order, each block with the number of its first row."""
        start = 0
        for part in self.values.split(max(1, _NUMBERS_AT_ONCE // self.values.shape[1])):
            yield start, (part.double() - self.center) / self.scale
            start += len(part)


def _usual(known: _Scaled) -> float:
    mean = torch.stack([part.sum(0) for _, part in known.blocks()]).sum(0) / len(known)
    count = min(len(known), SAMPLE, max(_FEWEST, _DISTANCES // len(known)))
    chosen = torch.linspace(0, len(known) - 1, count).round().long()
    found = torch.cat([_to_another((known.at(rows) - mean).float(), known, mean) for rows in chosen.split(_BLOCK)])
    finite = found[torch.isfinite(found)]
    return float(finite.median()) if len(finite) else 0.0


def _to_another(rows: Tensor, known: _Scaled, mean: Tensor) -> Tensor:
    """Give the distance (b,) of each row to the nearest of `known` that differs from it; infinity where none does."""

    def distances() -> Iterator[Tensor]:
        return (torch.cdist(rows, (part - mean).float()) for _, part in known.blocks())

    average = torch.stack([distance.mean() * distance.shape[1] for distance in distances()]).sum() / len(known)
    nearest = torch.full((len(rows),), float("inf"))
    for distance in distances():
        nearest = torch.minimum(nearest, distance.masked_fill(distance < 1e-3 * average, float("inf")).amin(1))
    return nearest


def _nearest(rows: _Scaled, known: _Scaled) -> tuple[Tensor, Tensor]:
    """Give the distance (n,) of each row to the nearest of `known`, and which that is (n,); exact where it is small."""
    distance, place = [], []
    for _, own in rows.blocks():
        nearest = torch.full((len(own),), float("inf"))
        found = torch.zeros(len(own), dtype=torch.int64)
        for start, part in known.blocks():
            there = part.float()
            for some in torch.arange(len(own)).split(_BLOCK):
                between = torch.cdist(own[some].float(), there)
                index = between.argmin(1)
                least = between.gather(1, index[:, None])[:, 0]
                nearer = least < nearest[some]
                nearest[some] = torch.where(nearer, least, nearest[some])
                found[some] = torch.where(nearer, start + index, found[some])
        place.append(found)
        distance.append(
            torch.cat(
                [(own[some] - known.at(found[some])).norm(dim=1) for some in torch.arange(len(own)).split(_BLOCK)]
            )
        )
    return torch.cat(distance), torch.cat(place)
