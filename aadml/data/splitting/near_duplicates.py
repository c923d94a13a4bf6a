"""Search for rows of one split that repeat rows of another split, exactly or with noise."""

from collections.abc import Iterator

import torch
from torch import Tensor

from aadml.comparison.features import Matrix
from aadml.comparison.moments import moments, parts
from aadml.comparison.stored_rows import StoredRows

SHARE = 0.15
"""Rows nearer than this share of the usual distance between nearest neighbors count as duplicates."""

SAMPLE = 1000
"""Number of rows of a set for the computation of the usual distance. The number is reduced, but not below `_FEWEST`, if
more than `_DISTANCES` distances would be needed."""
_FEWEST, _DISTANCES = 100, 100_000_000
_BLOCK = 512

Pair = tuple[int, int, float]
"""Row, row of the other set, and their distance as a share of the usual distance."""


def near_duplicates(
    rows: Matrix, known: Matrix, *, share: float = SHARE, scaled: bool = True, among: Matrix | None = None
) -> list[Pair]:
    """Return a pair for each row of `rows` that equals a row of `known`, exactly or nearly.

    For at most SAMPLE rows of `among`, the distance to the nearest different row of `among` is computed. The usual
    distance is the median of these distances.

    Args:
        rows: (n, d) rows to look up.
        known: (m, d) rows to search.
        share: two rows are duplicates if their distance is at most this share of the usual distance.
        scaled: whether to divide each column by its standard deviation in `known`.
        among: (k, d) rows that define the usual distance; by default `known`. A small set overestimates the
            distance.

    Returns:
        Pairs with the nearest row of `known` (see `Pair`), nearest pairs first.
    """
    if not len(rows) or not len(known):
        return []
    center, deviation = (statistics := moments(known)).mean, statistics.deviation
    scale = torch.where(deviation > 0, deviation, 1.0) if scaled else torch.ones_like(deviation)

    def centered(values: Matrix) -> StoredRows:  # without centering, rounding errors would exceed small distances
        stored = StoredRows.of(values.numpy()) if isinstance(values, Tensor) else values
        return stored.changed(lambda part: (part.double() - center) / scale)

    usual = usual_distance(centered(known if among is None else among))
    distance, nearest = _nearest(centered(rows), centered(known))
    pairs = [
        (i, int(nearest[i]), float(distance[i] / usual) if usual else 0.0)
        for i in (distance <= share * usual).nonzero()[:, 0].tolist()
    ]
    return sorted(pairs, key=lambda pair: pair[2])


def usual_distance(known: StoredRows) -> float:
    """Return the usual distance of the rows `known` (n, d).

    The usual distance is the median of the distances from at most SAMPLE rows to the nearest different row. If all
    rows are equal, the distance is 0.
    """
    known = known.changed(Tensor.double)
    mean = torch.stack([part.sum(0) for part in parts(known)]).sum(0) / len(known)
    count = min(len(known), SAMPLE, max(_FEWEST, _DISTANCES // len(known)))
    chosen = torch.linspace(0, len(known) - 1, count).round().long()
    blocks = ((known.batch(rows) - mean).float() for rows in chosen.split(_BLOCK))
    distances = torch.cat([_to_another(block, known, mean) for block in blocks])
    finite = distances[torch.isfinite(distances)]
    return float(finite.median()) if len(finite) else 0.0


def _to_another(rows: Tensor, known: StoredRows, mean: Tensor) -> Tensor:
    """Return the distance (b,) from each row to the nearest different row of `known`; infinity without such a row."""

    def distances() -> Iterator[Tensor]:
        return (torch.cdist(rows, (part - mean).float()) for part in parts(known))

    average = torch.stack([distance.mean() * distance.shape[1] for distance in distances()]).sum() / len(known)
    nearest = torch.full((len(rows),), float("inf"))
    for distance in distances():
        nearest = torch.minimum(nearest, distance.masked_fill(distance < 1e-3 * average, float("inf")).amin(1))
    return nearest


def _nearest(rows: StoredRows, known: StoredRows) -> tuple[Tensor, Tensor]:
    """Return the distance (n,) from each row of `rows` to the nearest row of `known`, and that row's index (n,).

    The distance is in double precision.
    """
    distances, indices = [], []
    for block in parts(rows):
        pieces = block.split(_BLOCK)
        nearest = torch.full((len(block),), float("inf"))
        index = torch.zeros(len(block), dtype=torch.int64)
        start = 0
        for part in parts(known):
            minima = [torch.cdist(piece.float(), part.float()).min(1) for piece in pieces]
            least = torch.cat([minimum.values for minimum in minima])
            place = torch.cat([minimum.indices for minimum in minima])
            index = torch.where(least < nearest, start + place, index)
            nearest = torch.minimum(nearest, least)
            start += len(part)
        indices.append(index)
        rest = zip(pieces, index.split(_BLOCK), strict=True)
        distances += [(piece - known.batch(place)).norm(dim=1) for piece, place in rest]
    return torch.cat(distances), torch.cat(indices)
