"""Cosines in float64 by sums in a fixed order, so that equal vectors have equal scores."""

import functools
from collections.abc import Sequence

import torch
from torch import Tensor

DECIMALS = 12
# entries of a block of products: the second-level cache of a CPU core, a part of a GPU's memory
BLOCK = {"cpu": 2**19, "cuda": 2**26}
LOOPED = 64  # up to this number of dimensions, a loop over them is faster than a reduction


def block_of(device: torch.device) -> int:
    """Return the number of products of a block on a device."""
    return BLOCK.get(device.type, BLOCK["cpu"])


def budget_of(vectors: Tensor) -> int:
    """Return the number of float64 entries of a block."""
    return block_of(vectors.device) // 4


def _lengths(vectors: Tensor) -> Tensor:
    return vectors.double().square().sum(-1).sqrt()


def lengths_of_all(vectors: Tensor) -> Tensor:
    """Compute the lengths (n,) of vectors (n, d) in float64, block by block."""
    return torch.cat([_lengths(part) for part in vectors.split(max(1, budget_of(vectors) // vectors.shape[1]))])


def from_sums(total: Tensor, query_lengths: Tensor, lengths: Tensor) -> Tensor:
    """Compute cosines (r, s) from inner products `total` (r, s) and the lengths of queries and bank rows.

    The cosine with a zero vector is 0. Cosines are rounded to twelve decimals, so that nearly equal cosines are
    ties.

    Args:
        total: (r, s) inner products.
        query_lengths: (r, 1) lengths of the queries.
        lengths: (r, s) or (1, s) lengths of the bank rows.
    """
    norms = query_lengths * lengths
    return torch.where(norms > 0, total / norms, torch.zeros_like(total)).round_(decimals=DECIMALS)


def summed(queries: Tensor, bank: Tensor) -> Tensor:
    """Compute inner products of queries and bank rows (..., d), summed in the same order for every entry."""
    if queries.shape[-1] > LOOPED:
        return (queries * bank).sum(-1)
    planes = zip(queries.unbind(-1), bank.movedim(-1, 0).contiguous(), strict=True)
    total: Tensor = functools.reduce(Tensor.add_, (query * plane for query, plane in planes))
    return total


def least(scores: Sequence[Tensor]) -> Tensor:
    """Return the elementwise minimum of scores (r, s) of several views; the first tensor is overwritten."""
    for other in scores[1:]:
        torch.minimum(scores[0], other, out=scores[0])
    return scores[0]


def best_of_all(queries: Sequence[Tensor], bank: Sequence[Tensor], lengths: Sequence[Tensor], k: int) -> Tensor:
    """Return the indices (r, k) of the k best bank rows of every query, in ascending order of index.

    The score of a bank row is the minimum over the views of the cosine in float64. Ties go to the smaller index.
    Equal queries are scored only once, which limits the time for a collapsed embedding.
    """
    widths = [view.shape[1] for view in bank]
    distinct, inverse = torch.unique(torch.cat(list(queries), 1), dim=0, return_inverse=True)
    budget = budget_of(bank[0])
    depth = 1 if max(widths) <= LOOPED else max(widths)
    rows = []
    for some in distinct.split(max(1, budget // (len(bank[0]) * depth))):
        part = max(1, budget // (len(some) * depth))
        views = zip(some.split(widths, 1), bank, lengths, strict=True)
        rows.append(_first(least([_all_scores(*view, part) for view in views]), k))
    return torch.cat(rows)[inverse]


def _all_scores(queries: Tensor, bank: Tensor, lengths: Tensor, part: int) -> Tensor:
    sums = [summed(queries[:, None].double(), block[None].double()) for block in bank.split(part)]
    return from_sums(torch.cat(sums, 1), _lengths(queries)[:, None], lengths[None])


def _first(scores: Tensor, k: int) -> Tensor:
    """Return the indices (r, k) of the k largest entries of every row of `scores` (r, n), in ascending order.

    Ties go to the smaller index.
    """
    last = scores.topk(k, 1).values[:, -1:]
    above, tied = scores > last, scores == last
    room = k - above.sum(1, keepdim=True)
    return (above | (tied & (tied.cumsum(1) <= room))).nonzero()[:, 1].view(-1, k)
