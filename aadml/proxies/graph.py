"""The correlation graph: which clips are the neighbors of which (AADML, Equation 1), as lists of fixed width."""

from dataclasses import dataclass

import torch
from torch import Tensor

from aadml.comparison.processes import group
from aadml.feature_extraction.ground.errors import InputError
from aadml.proxies.exact_search import nearest


@dataclass(frozen=True)
class NeighborLists:
    """Neighbors of a anchors, best first; an anchor with fewer than k has its list filled up with masked entries.

    Attributes:
        index: (a, k) int64 rows of the bank; -1 where masked.
        mask: (a, k) bool, true where there is a neighbor.
        similarity: (a, k) float64, minus infinity where masked; 0 for neighbors that were drawn at random.
    """

    index: Tensor
    mask: Tensor
    similarity: Tensor

    def __len__(self) -> int:
        return len(self.index)

    def take(self, rows: Tensor) -> "NeighborLists":
        """Return the lists of the anchors `rows` (m,), in that order."""
        return NeighborLists(self.index[rows], self.mask[rows], self.similarity[rows])


def neighbors(
    bank: Tensor,
    queries: Tensor | None = None,
    *,
    k: int,
    labels: Tensor | None = None,
    groups: Tensor | None = None,
    similarity: str = "cosine",
    exclude_self: bool | None = None,
) -> NeighborLists:
    """Find the exact k nearest neighbors of every query in a bank; memory grows with n, never with n squared.

    Where a training divides rows over processes, each looks for the neighbors of its own queries.

    Args:
        bank: (n, d) float vectors.
        queries: (a, d); by default the bank asks itself.
        k: how many neighbors. Ties go to the smaller index.
        labels: (n,) classes: neighbors come from the query's own class only (Equation 1's condition); query i is then
            of the clip of bank row i.
        groups: (n,) codes: entries of one group are never neighbors (captions of one clip). Query i is bank row i.
        similarity: "cosine", "euclidean" or "dot".
        exclude_self: leave bank row i out of the list of query i; by default where the bank asks itself.

    Returns:
        Lists (a, k).

    Raises:
        InputError: shapes that do not fit, vectors with NaN or infinity, or k below 1.
    """
    asked = bank if queries is None else queries
    alone = queries is None if exclude_self is None else exclude_self
    _check(bank, asked, k, same_rows=alone or groups is not None or labels is not None)
    labels, groups = (_on(bank.device, codes) for codes in (labels, groups))
    codes = groups if groups is not None else torch.arange(len(bank), device=bank.device) if alone else None
    excluded = 0 if codes is None else _largest(codes)
    index = torch.full((len(asked), k), -1, dtype=torch.int64, device=bank.device)
    score = torch.full((len(asked), k), -torch.inf, dtype=torch.float64, device=bank.device)
    for rows, members in by_class(len(asked), len(bank), labels, bank.device):
        part, own = bank[members], group.own(len(rows))
        itself = asked is bank and rows is members and own == slice(0, len(rows))
        rows = rows[own]
        found, score[rows] = nearest(
            part if itself else asked[rows],
            part,
            k=k,
            similarity=similarity,
            query_codes=None if codes is None else codes[rows],
            bank_codes=None if codes is None else codes[members],
            excluded=excluded,
        )
        index[rows] = torch.where(found < 0, -1, members[found.clamp_min(0)])
    index, score = group.largest(index), group.largest(score)
    return NeighborLists(index, index >= 0, score)


def random_neighbors(
    count: int,
    *,
    k: int,
    labels: Tensor | None = None,
    groups: Tensor | None = None,
    generator: torch.Generator,
) -> NeighborLists:
    """Draw k neighbors of every row uniformly, without replacement: the control that tells what nearness is worth.

    Args:
        count: n, the rows of the bank.
        k: how many neighbors; fewer where a class has fewer.
        labels: (n,) draw from the row's own class only.
        groups: (n,) codes: never from the row's own group.
        generator: of the draws.

    Returns:
        Lists (n, k).
    """
    device = next((codes.device for codes in (labels, groups) if codes is not None), torch.device("cpu"))
    labels = torch.zeros(count, dtype=torch.int64, device=device) if labels is None else labels
    groups = torch.arange(count, device=device) if groups is None else groups
    kind = torch.unique(labels, return_inverse=True)[1]
    pair = torch.unique(torch.stack([kind, groups]), dim=1, return_inverse=True)[1]  # ordered by class, then group
    order = torch.argsort(pair, stable=True)
    class_start, class_size = _spans(kind)
    group_start, group_size = _spans(pair)
    eligible = class_size - group_size
    drawn = _distinct_draws(eligible, k, generator)  # (n, k) places among the eligible
    place = class_start[:, None] + drawn
    place = torch.where(place >= group_start[:, None], place + group_size[:, None], place)
    mask = torch.arange(k, device=device)[None] < eligible[:, None]
    index = torch.where(mask, order[place.clamp_max(count - 1)], -1)
    return NeighborLists(index, mask, torch.where(mask, 0.0, -torch.inf).double())


def united(own: NeighborLists, other: NeighborLists) -> NeighborLists:
    """Join two lists of the same anchors (n, k) and (n, m) to (n, k + m): own first, what both hold masked once."""
    twice = ((other.index[:, :, None] == own.index[:, None, :]) & own.mask[:, None, :]).any(2)
    mask = other.mask & ~twice
    return NeighborLists(
        torch.cat([own.index, other.index.masked_fill(~mask, -1)], 1),
        torch.cat([own.mask, mask], 1),
        torch.cat([own.similarity, other.similarity.masked_fill(~mask, -torch.inf)], 1),
    )


def _check(bank: Tensor, queries: Tensor, k: int, same_rows: bool) -> None:
    if k < 1:
        raise InputError(f"graph: k must be at least 1, not {k}")
    if bank.ndim != 2 or queries.ndim != 2 or bank.shape[1] != queries.shape[1]:
        raise InputError(f"graph: a bank {tuple(bank.shape)} cannot be asked by queries {tuple(queries.shape)}")
    if same_rows and len(bank) != len(queries):
        raise InputError(f"graph: {len(queries)} queries are not the {len(bank)} rows of the bank")
    if not _is_finite(bank) or (queries is not bank and not _is_finite(queries)):
        raise InputError("graph: the vectors hold NaN or infinity; has the training diverged?")


def _is_finite(vectors: Tensor) -> bool:
    """Say whether there is no NaN or infinity; a finite sum has none, which is faster to see than every entry."""
    return bool(torch.isfinite(vectors.sum())) or bool(torch.isfinite(vectors).all())


def _on(device: torch.device, codes: Tensor | None) -> Tensor | None:
    return None if codes is None else codes.to(device)


def _largest(codes: Tensor) -> int:
    """Count the entries of the most frequent code."""
    return int(torch.unique(codes, return_counts=True)[1].max()) if len(codes) else 0


def by_class(asked: int, count: int, labels: Tensor | None, device: torch.device) -> list[tuple[Tensor, Tensor]]:
    """Pair the queries of each class with the bank rows of it, ascending; one pair of all without labels."""
    if labels is None:
        return [(torch.arange(asked, device=device), torch.arange(count, device=device))]
    counts = torch.unique(labels, return_counts=True)[1].tolist()
    return [(rows, rows) for rows in torch.argsort(labels, stable=True).split(counts)]


def _spans(codes: Tensor) -> tuple[Tensor, Tensor]:
    """Give for each row where its code begins once rows are sorted by code, and how many rows have it."""
    counts = torch.bincount(codes)
    return (counts.cumsum(0) - counts)[codes], counts[codes]


def _distinct_draws(ranges: Tensor, k: int, generator: torch.Generator) -> Tensor:
    """Draw k different whole numbers in 0 .. ranges-1 of every row, uniformly; (n,) -> (n, k).

    The j-th draw is a place among the numbers not yet drawn: stepping over the drawn ones, in order, finds it.
    """
    taken = ranges.new_empty(len(ranges), 0)
    drawn = []
    for j in range(k):
        left = (ranges - j).clamp_min(1)
        share = torch.rand(len(ranges), generator=generator, device=generator.device, dtype=torch.float64)
        number = (share.to(ranges.device) * left).long().clamp_max_(left - 1) if len(ranges) else left
        for earlier in taken.unbind(1):
            number = number + (number >= earlier)
        drawn.append(number)
        taken = torch.cat([taken, number[:, None]], 1).sort(1).values
    return torch.stack(drawn, 1)
