"""Neighbors on which modalities agree (AVID-CMA, Morgado et al., Audio-visual instance discrimination, CVPR 2021)."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from aadml.comparison.pairwise import TINY
from aadml.proxies.exact_search import BLOCK, DECIMALS, SLACK_ITEMS, exact_scores, unit_error
from aadml.proxies.graph import NeighborLists
from feature_extraction.ground.errors import InputError


@torch.no_grad()
def agreeing_neighbors(
    vectors: Sequence[Tensor], *, k: int, labels: Tensor | None = None, groups: Tensor | None = None
) -> NeighborLists:
    """Find the k clips of every clip that are most alike in the modality in which they are least alike.

        s_ij = min over modalities m of cos(x_i^m, x_j^m)

    Two clips agree where sound and picture say so both: cross-modal agreement. The search is exact: products in float32
    choose, float64 decides, ties go to the smaller index, and no matrix of all pairs is held.

    Args:
        vectors: of each modality (n, d_m), row i of all of them being one clip.
        k: how many neighbors.
        labels: (n,) classes: neighbors come from the clip's own class only.
        groups: (n,) codes: clips of one group are never neighbors; by default every clip is its own group.

    Returns:
        Lists (n, k).

    Raises:
        InputError: no modality, unequal counts, NaN or infinity, or k below 1.
    """
    _check(vectors, k)
    count, device = len(vectors[0]), vectors[0].device
    kind = torch.zeros(count, dtype=torch.int64) if labels is None else labels
    group = torch.arange(count) if groups is None else groups
    kind, group = kind.to(device), group.to(device)
    index = torch.full((count, k), -1, dtype=torch.int64, device=device)
    score = torch.full((count, k), -torch.inf, dtype=torch.float64, device=device)
    unit = [F.normalize(values.double(), dim=1, eps=TINY).float() for values in vectors]
    error = max(unit_error(values.shape[1], torch.float32, device) for values in vectors) + 10.0**-DECIMALS
    wanted = min(k, count)
    with torch.autocast(device.type, enabled=False):
        for rows in torch.arange(count, device=device).split(max(1, BLOCK.get(device.type, BLOCK["cpu"]) // count)):
            barred = (group[rows, None] == group[None]) | (kind[rows, None] != kind[None])
            rough = _least([values[rows] @ values.T for values in unit]).masked_fill_(barred, -torch.inf)
            value, candidates = rough.topk(min(wanted + SLACK_ITEMS, count), 1)
            candidates = candidates.sort(1).values
            _fill(index, score, vectors, rows, candidates, barred.gather(1, candidates), wanted)
            unsure = value[:, -1] >= score[rows, wanted - 1] - 2 * error
            unsure &= (value[:, -1] > -torch.inf) & (candidates.shape[1] < count)
            for row in unsure.nonzero()[:, 0].tolist():
                whole = torch.arange(count, device=device)[None]
                _fill(index, score, vectors, rows[row : row + 1], whole, barred[row : row + 1], wanted)
    return NeighborLists(index, index >= 0, score)


def _fill(
    index: Tensor, score: Tensor, vectors: Sequence[Tensor], rows: Tensor, candidates: Tensor, barred: Tensor, k: int
) -> None:
    """Write the k best of the candidates (r, s), ascending by index, into the lists of `rows` (r,)."""
    exact = _least([exact_scores(values[rows, None], values[candidates], "cosine") for values in vectors])
    best, order = exact.masked_fill_(barred, -torch.inf).sort(dim=1, descending=True, stable=True)
    best, order = best[:, :k], order[:, :k]
    score[rows, :k] = best
    index[rows, :k] = candidates.gather(1, order).masked_fill(best == -torch.inf, -1)


def _least(scores: Sequence[Tensor]) -> Tensor:
    """Give the least of several scores, entry by entry."""
    least = scores[0]
    for other in scores[1:]:
        least = torch.minimum(least, other)
    return least


def _check(vectors: Sequence[Tensor], k: int) -> None:
    if k < 1:
        raise InputError(f"graph: k must be at least 1, not {k}")
    if not vectors or len({len(values) for values in vectors}) != 1 or any(values.ndim != 2 for values in vectors):
        shapes = ", ".join(str(tuple(values.shape)) for values in vectors)
        raise InputError(f"graph: vectors of the same clips are wanted in each modality, not {shapes or 'none'}")
    if not all(bool(torch.isfinite(values).all()) for values in vectors):
        raise InputError("graph: the vectors hold NaN or infinity; has the training diverged?")
