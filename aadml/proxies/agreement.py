"""Neighbors by cross-modal agreement (AVID-CMA, Morgado et al., Audio-visual instance discrimination, CVPR 2021)."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from aadml.comparison.pairwise import TINY
from aadml.feature_extraction.ground.errors import InputError
from aadml.proxies.exact_search import COLUMNS, SLACK_GROUPS, SLACK_ITEMS, group_size, least, unit_error, within_groups
from aadml.proxies.exact_sums import DECIMALS, block_of, exact_scores
from aadml.proxies.graph import NeighborLists, by_class


@torch.no_grad()
def agreeing_neighbors(
    vectors: Sequence[Tensor], *, k: int, labels: Tensor | None = None, groups: Tensor | None = None
) -> NeighborLists:
    """Find the k nearest clips of every clip by the minimum cosine over modalities.

        s_ij = min over modalities m of cos(x_i^m, x_j^m)

    Two clips agree if they are similar in every modality. The search is exact: float32 products select candidates,
    float64 similarities rank them, and ties go to the smaller index. No matrix of all pairs is stored.

    Args:
        vectors: (n, d_m) for each modality; row i of all modalities is one clip.
        k: number of neighbors.
        labels: (n,) classes; neighbors come from the clip's own class only.
        groups: (n,) codes; clips of one group are never neighbors. By default every clip is its own group.

    Returns:
        Lists (n, k).

    Raises:
        InputError: there is no modality, the counts differ, a vector is not finite, or k is below 1.
    """
    _check(vectors, k)
    count, device = len(vectors[0]), vectors[0].device
    index = torch.full((count, k), -1, dtype=torch.int64, device=device)
    score = torch.full((count, k), -torch.inf, dtype=torch.float64, device=device)
    group = (torch.arange(count) if groups is None else groups).to(device)
    with torch.autocast(device.type, enabled=False):
        for rows, _ in by_class(count, count, None if labels is None else labels.to(device), device):
            places, score[rows] = _among([values[rows] for values in vectors], group[rows], k)
            index[rows] = torch.where(places < 0, -1, rows[places.clamp_min(0)])
    return NeighborLists(index, index >= 0, score)


def _among(vectors: Sequence[Tensor], group: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the lists (n, k) and similarities of n clips of one class; clips of one group (n,) are never neighbors."""
    count, device = len(group), group.device
    index = torch.full((count, k), -1, dtype=torch.int64, device=device)
    score = torch.full((count, k), -torch.inf, dtype=torch.float64, device=device)
    unit = [F.normalize(values.double(), dim=1, eps=TINY).float() for values in vectors]
    width = max(values.shape[1] for values in vectors)
    error = unit_error(width, torch.float32, device) + 10.0**-DECIMALS
    alike = int(torch.unique(group, return_counts=True)[1].max())
    wanted, few = min(k + alike, count), min(k + alike + SLACK_ITEMS, count)
    size = group_size(count, wanted, width)
    banks = [torch.cat([values, values[-1:].expand(-count % size, -1)]) for values in unit]
    at_once = block_of(device)
    opening = size * (wanted + SLACK_GROUPS) * width
    for rows in torch.arange(count, device=device).split(max(1, min(at_once // COLUMNS, 8 * at_once // opening))):
        value, candidates, closed = within_groups(
            banks, [values[rows] for values in unit], size=size, count=count, wanted=wanted, few=few
        )
        outside = torch.maximum(value[:, -1], closed)
        _fill(index, score, vectors, rows, candidates.sort(1).values, group)
        unsure = (outside >= score[rows, min(k, count) - 1] - 2 * error) & (candidates.shape[1] < count)
        for row in unsure.nonzero()[:, 0].tolist():
            _fill(index, score, vectors, rows[row : row + 1], torch.arange(count, device=device)[None], group)
    return index, score


def _fill(
    index: Tensor, score: Tensor, vectors: Sequence[Tensor], rows: Tensor, candidates: Tensor, group: Tensor
) -> None:
    """Write the best of the candidates (r, s), ascending by index, into the lists of `rows` (r,)."""
    exact = least([exact_scores(values[rows, None], values[candidates]) for values in vectors])
    barred = group[rows, None] == group[candidates]
    best, order = exact.masked_fill_(barred, -torch.inf).sort(dim=1, descending=True, stable=True)
    best, order = best[:, : index.shape[1]], order[:, : index.shape[1]]
    score[rows, : best.shape[1]] = best
    index[rows, : best.shape[1]] = candidates.gather(1, order).masked_fill(best == -torch.inf, -1)


def _check(vectors: Sequence[Tensor], k: int) -> None:
    if k < 1:
        raise InputError(f"graph: k is {k}; pass a whole number of at least 1")
    if not vectors or len({len(values) for values in vectors}) != 1 or any(values.ndim != 2 for values in vectors):
        shapes = ", ".join(str(tuple(values.shape)) for values in vectors)
        raise InputError(
            f"graph: vectors of the shapes {shapes or '(none)'} given; pass one matrix per modality, with the same "
            "clips as rows"
        )
    if not all(bool(torch.isfinite(values).all()) for values in vectors):
        raise InputError(
            "graph: the vectors contain NaN or infinity, as after a diverged training; pass finite vectors, or lower "
            "training.learning_rate"
        )
