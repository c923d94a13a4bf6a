"""Correlation graph (AADML, Equation 1), as neighbor lists of fixed width."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from aadml.comparison.processes import group
from aadml.feature_extraction.ground.errors import InputError
from aadml.proxies.exact_search import Views, nearest


@dataclass(frozen=True)
class NeighborLists:
    """Lists of up to k neighbors for each of `a` anchors; the remaining entries of a list are masked.

    The lists of `neighbors` and `agreeing_neighbors` are in descending order of similarity.

    Attributes:
        index: (a, k) int64 rows of the bank; -1 where masked.
        mask: (a, k) bool, true where there is a neighbor.
        similarity: (a, k) float64; minus infinity where masked, and 0 for random neighbors.
    """

    index: Tensor
    mask: Tensor
    similarity: Tensor

    def __len__(self) -> int:
        return len(self.index)

    def take(self, rows: Tensor) -> "NeighborLists":
        """Return the lists of the anchors `rows` (m,), in that order."""
        return NeighborLists(self.index[rows], self.mask[rows], self.similarity[rows])

    def to(self, device: torch.device) -> "NeighborLists":
        """Return the lists on a device."""
        return NeighborLists(self.index.to(device), self.mask.to(device), self.similarity.to(device))


def neighbors(
    bank: Tensor,
    queries: Tensor | None = None,
    *,
    k: int,
    labels: Tensor | None = None,
    groups: Tensor | None = None,
) -> NeighborLists:
    """Find the k nearest bank rows of every query by exact cosine; memory grows linearly with n.

    In distributed training, each process finds the neighbors of its share of the queries, and returns all lists.

    Args:
        bank: (n, d) float vectors.
        queries: (a, d); by default the bank, where no row is its own neighbor.
        k: number of neighbors. Ties go to the smaller index.
        labels: (n,) classes; neighbors come from the query's own class only (Equation 1's condition). Query i must
            be of the same clip as bank row i.
        groups: (n,) codes; rows of one group, such as the captions of one clip, are never neighbors. Query i has
            the code of bank row i.

    Returns:
        Lists (a, k).

    Raises:
        InputError: shapes that do not match, a vector that is not finite, or k below 1.
    """
    return _found([bank], None if queries is None else [queries], k, labels, groups)


def agreeing_neighbors(
    vectors: Sequence[Tensor], *, k: int, labels: Tensor | None = None, groups: Tensor | None = None
) -> NeighborLists:
    """Find the k nearest clips of every clip by the minimum cosine over modalities.

        s_ij = min over modalities m of cos(x_i^m, x_j^m)

    Two clips agree if they are similar in every modality (AVID-CMA, Morgado et al., CVPR 2021).

    Reference: Morgado et al., Audio-visual instance discrimination with cross-modal agreement, CVPR 2021, https://doi.org/10.1109/CVPR46437.2021.01229

    Args:
        vectors: (n, d_m) for each modality; row i of all modalities is one clip.
        k: number of neighbors. Ties go to the smaller index.
        labels: (n,) classes; neighbors come from the clip's own class only.
        groups: (n,) codes; clips of one group are never neighbors. By default every clip is its own group.

    Returns:
        Lists (n, k).

    Raises:
        InputError: different counts, a vector that is not finite, or k below 1.
    """
    return _found(list(vectors), None, k, labels, groups)


def _found(bank: Views, queries: Views | None, k: int, labels: Tensor | None, groups: Tensor | None) -> NeighborLists:
    alone, queries = queries is None, bank if queries is None else queries
    _check(bank, queries, k, same_rows=groups is not None or labels is not None)
    queried, count, device = len(queries[0]), len(bank[0]), bank[0].device
    labels, groups = (None if codes is None else codes.to(device) for codes in (labels, groups))
    codes = groups if groups is not None else torch.arange(count, device=device) if alone else None
    excluded = 0 if codes is None else _largest(codes)
    index = torch.full((queried, k), -1, dtype=torch.int64, device=device)
    score = torch.full((queried, k), -torch.inf, dtype=torch.float64, device=device)
    for rows, members in _by_class(queried, count, labels, device):
        part, share = [view[members] for view in bank], group.own(len(rows))
        itself = queries is bank and rows is members and share == slice(0, len(rows))
        rows = rows[share]
        places, score[rows] = nearest(
            part if itself else [view[rows] for view in queries],
            part,
            k=k,
            query_codes=None if codes is None else codes[rows],
            bank_codes=None if codes is None else codes[members],
            excluded=excluded,
        )
        index[rows] = torch.where(places < 0, -1, members[places.clamp_min(0)])
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
    """Draw k neighbors of every row uniformly, without replacement, as a control for nearest neighbors.

    Args:
        count: n, the number of bank rows.
        k: number of neighbors. If fewer than k rows may be neighbors of a row, all of these rows are drawn.
        labels: (n,) classes; neighbors come from the row's own class only.
        groups: (n,) codes; rows of one group are never neighbors. By default every row is its own group.
        generator: generator of the draws.

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
    drawn = _distinct_draws(eligible, k, generator)  # (n, k) positions among the eligible rows
    place = class_start[:, None] + drawn
    place = torch.where(place >= group_start[:, None], place + group_size[:, None], place)
    mask = torch.arange(k, device=device)[None] < eligible[:, None]
    index = torch.where(mask, order[place.clamp_max(count - 1)], -1)
    return NeighborLists(index, mask, torch.where(mask, 0.0, -torch.inf).double())


def united(first: NeighborLists, second: NeighborLists) -> NeighborLists:
    """Join the lists (n, k) and (n, m) of the same n anchors, and return lists (n, k + m).

    A neighbor in `second` that is also in `first` is masked in the result.
    """
    twice = ((second.index[:, :, None] == first.index[:, None, :]) & first.mask[:, None, :]).any(2)
    mask = second.mask & ~twice
    return NeighborLists(
        torch.cat([first.index, second.index.masked_fill(~mask, -1)], 1),
        torch.cat([first.mask, mask], 1),
        torch.cat([first.similarity, second.similarity.masked_fill(~mask, -torch.inf)], 1),
    )


def _check(bank: Views, queries: Views, k: int, same_rows: bool) -> None:
    if k < 1:
        raise InputError(f"graph: k is {k}; pass a whole number of at least 1")
    for view, others in zip(bank, queries, strict=True):
        if view.ndim != 2 or others.ndim != 2 or view.shape[1] != others.shape[1]:
            raise InputError(
                f"graph: the bank has shape {tuple(view.shape)}, but the queries have shape {tuple(others.shape)}; "
                "pass matrices of the same width"
            )
    counts = sorted({len(view) for view in bank})
    if len(counts) > 1:
        raise InputError(
            f"graph: the modalities have different numbers of clips, {counts}; pass one matrix per modality, of the "
            "same clips"
        )
    if same_rows and counts != [len(queries[0])]:
        raise InputError(
            f"graph: there are {len(queries[0])} queries for {counts[0]} bank rows; pass one query per bank row"
        )
    if not all(map(_is_finite, bank)) or (queries is not bank and not all(map(_is_finite, queries))):
        raise InputError(
            "graph: the vectors contain NaN or infinity, as after training that diverged; pass finite vectors, or "
            "lower training.learning_rate"
        )


def _is_finite(vectors: Tensor) -> bool:
    # a finite sum has finite terms, and is faster to test than every entry
    return bool(torch.isfinite(vectors.sum())) or bool(torch.isfinite(vectors).all())


def _largest(codes: Tensor) -> int:
    return int(torch.unique(codes, return_counts=True)[1].max()) if len(codes) else 0


def _by_class(queries: int, count: int, labels: Tensor | None, device: torch.device) -> list[tuple[Tensor, Tensor]]:
    """Return a pair of query rows and bank rows for each class; without labels, a single pair contains all rows.

    The pairs are in ascending order of class, and the rows of a pair are in ascending order.
    """
    if labels is None:
        return [(torch.arange(queries, device=device), torch.arange(count, device=device))]
    counts = torch.unique(labels, return_counts=True)[1].tolist()
    return [(rows, rows) for rows in torch.argsort(labels, stable=True).split(counts)]


def _spans(codes: Tensor) -> tuple[Tensor, Tensor]:
    """Return, for each row, the start of its code in rows sorted by code, and the number of rows with the code."""
    counts = torch.bincount(codes)
    return (counts.cumsum(0) - counts)[codes], counts[codes]


def _distinct_draws(ranges: Tensor, k: int, generator: torch.Generator) -> Tensor:
    """Draw integers (n, k): k different integers for each of n rows, uniformly from 0 to the row's range minus 1.

    If the range r of a row is below k, only the first r draws are valid, and later draws are outside the range. The
    j-th draw is first a position among the numbers not yet drawn. The position then increases by 1 for each drawn
    number, in ascending order, that is not larger.

    Args:
        ranges: (n,) range of each row.
        k: number of draws per row.
        generator: generator of the draws.
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
