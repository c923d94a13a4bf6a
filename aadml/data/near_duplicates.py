"""Rows of one split that stand in another, exactly or up to noise: far nearer than neighbors of one split ever are."""

import torch
from torch import Tensor

SHARE = 0.15
"""Rows nearer than this share of the usual distance between nearest neighbors are called duplicates."""

SAMPLE = 1000
_BLOCK = 512

Pair = tuple[int, int, float]
"""Row, row of the other set, and their distance as a share of the usual one."""


def near_duplicates(
    rows: Tensor, known: Tensor, *, share: float = SHARE, scaled: bool = True, among: Tensor | None = None
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
    center = known.double().mean(0)  # far from the origin, distances would be rounded away
    scale = torch.ones_like(center)
    if scaled:
        spread = known.double().std(0, correction=0)
        scale = torch.where(spread > 0, spread, scale)
    one, other = (rows.double() - center) / scale, (known.double() - center) / scale
    usual = usual_distance(other if among is None else (among.double() - center) / scale)
    distance, nearest = _nearest(one, other)
    found = [
        (i, int(nearest[i]), float(distance[i] / usual) if usual else 0.0)
        for i in (distance <= share * usual).nonzero()[:, 0].tolist()
    ]
    return sorted(found, key=lambda pair: pair[2])


def usual_distance(known: Tensor) -> float:
    """Give the median distance of a row to the nearest row that differs from it; 0 where all are the same."""
    known = known - known.mean(0)
    chosen = torch.linspace(0, len(known) - 1, min(SAMPLE, len(known))).round().long()
    found = []
    for rows in chosen.split(_BLOCK):
        distance = torch.cdist(known[rows].float(), known.float())
        found.append(distance.masked_fill(distance < 1e-3 * distance.mean(), float("inf")).amin(1))
    finite = torch.cat(found)
    finite = finite[torch.isfinite(finite)]
    return float(finite.median()) if len(finite) else 0.0


def _nearest(rows: Tensor, known: Tensor) -> tuple[Tensor, Tensor]:
    """Give the distance (n,) of each row to the nearest of `known`, and which that is (n,); exact where it is small."""
    distance, place = [], []
    for block in rows.split(_BLOCK):
        index = torch.cdist(block.float(), known.float()).argmin(1)
        place.append(index)
        distance.append((block - known[index]).norm(dim=1))
    return torch.cat(distance), torch.cat(place)
