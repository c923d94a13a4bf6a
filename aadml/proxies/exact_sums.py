"""Similarities in float64 by sums whose order does not depend on where a row stands: equal vectors get equal scores."""

import functools

import torch
from torch import Tensor

SIMILARITIES: dict[str, str] = {
    "cosine": "cosine of the angle (0 with a zero vector); equal to twelve decimals is a tie",
    "euclidean": "minus the squared Euclidean distance",
    "dot": "inner product",
}

DECIMALS = 12
# entries of one block of products: the second-level cache of a CPU core, a part of a GPU's memory
BLOCK = {"cpu": 2**19, "cuda": 2**26}
LOOPED = 64  # up to so many dimensions a loop over them is faster than a reduction of the last one


def block_of(device: torch.device) -> int:
    """Count the products that a device makes at a time."""
    return BLOCK.get(device.type, BLOCK["cpu"])


def budget_of(vectors: Tensor) -> int:
    """Count the entries in float64 that are worked on at a time."""
    return block_of(vectors.device) // 4


def exact_scores(queries: Tensor, bank: Tensor, similarity: str) -> Tensor:
    """Score in float64, in an order of sums that is the same everywhere: (r, 1, d) against (r or 1, s, d) -> (r, s)."""
    total = summed(queries.double(), bank.double(), differences=similarity == "euclidean")
    return from_sums(total, _lengths(queries), _lengths(bank), similarity)


def _lengths(vectors: Tensor) -> Tensor:
    return vectors.double().square().sum(-1).sqrt()


def lengths_of_all(vectors: Tensor) -> Tensor:
    """Give the lengths of vectors (n, d), a few at a time: (n,) float64."""
    return torch.cat([_lengths(part) for part in vectors.split(max(1, budget_of(vectors) // vectors.shape[1]))])


def from_sums(total: Tensor, own: Tensor, lengths: Tensor, similarity: str) -> Tensor:
    """Turn sums (r, s) into similarities, of queries and bank rows of these lengths (r, 1) and (r or 1, s)."""
    if similarity == "euclidean":
        return total.neg_()
    if similarity == "dot":
        return total
    norms = own * lengths
    return torch.where(norms > 0, total / norms, torch.zeros_like(total)).round_(decimals=DECIMALS)


def summed(queries: Tensor, bank: Tensor, *, differences: bool) -> Tensor:
    """Sum products, or squared differences, over the last dimension, in an order that is the same for every entry."""
    if queries.shape[-1] > LOOPED:
        return (queries - bank).square_().sum(-1) if differences else (queries * bank).sum(-1)
    planes = zip(queries.unbind(-1), bank.movedim(-1, 0).contiguous(), strict=True)
    terms = ((query - plane).square_() if differences else query * plane for query, plane in planes)
    total: Tensor = functools.reduce(Tensor.add_, terms)
    return total


def best_of_all(queries: Tensor, bank: Tensor, lengths: Tensor, similarity: str, k: int) -> Tensor:
    """Score the whole bank in float64: the first k by similarity, then index, of every query: (r, k), in any order.

    Equal queries are scored once, so a collapsed embedding costs no more than a sound one.
    """
    distinct, inverse = torch.unique(queries, dim=0, return_inverse=True)
    budget = budget_of(bank)
    depth = 1 if bank.shape[1] <= LOOPED else bank.shape[1]
    found = []
    for some in distinct.split(max(1, budget // (len(bank) * depth))):
        part = max(1, budget // (len(some) * depth))
        own, wide = _lengths(some)[:, None], some[:, None].double()
        sums = [summed(wide, rows[None].double(), differences=similarity == "euclidean") for rows in bank.split(part)]
        found.append(_first(from_sums(torch.cat(sums, 1), own, lengths[None], similarity), k))
    return torch.cat(found)[inverse]


def _first(scores: Tensor, k: int) -> Tensor:
    """Choose k entries a row, the largest, and of equal ones the first: (r, n) -> (r, k), ascending by index."""
    last = scores.topk(k, 1).values[:, -1:]
    above, tied = scores > last, scores == last
    room = k - above.sum(1, keepdim=True)
    return (above | (tied & (tied.cumsum(1) <= room))).nonzero()[:, 1].view(-1, k)
