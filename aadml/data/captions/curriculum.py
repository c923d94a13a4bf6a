"""Batches of a chosen difficulty: partitions of the training pairs, as in the method 3CMLF (Chao et al., Eq. 2 and 3).

A batch is hard if its items resemble each other. Let e_i be the unit vectors of the n items, and s_m their sum over
batch m. The sum of all similarities within batches is  sum_m |s_m|^2 - n. Easy batches minimize this sum, and hard
batches maximize it.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from aadml.data.captions.batch_swaps import Codes, conflicts, refine, repair
from aadml.feature_extraction.ground.errors import InputError

_SEEDS_AT_ONCE = 32
_ROUNDS = 12  # of k-means


def objective(vectors: Tensor, batches: Tensor) -> float:
    """Compute sum_m |s_m|^2 for batches (m, b) of rows, where s_m is the sum of the vectors of batch m.

    The vectors (n, d) are first scaled to length 1.
    """
    unit = F.normalize(vectors, dim=1)
    return sum(float(unit[rows].sum(0).double().square().sum()) for rows in batches)


def partition(
    vectors: Tensor, size: int, *, hard: bool, sweeps: int = 40, codes: Sequence[Tensor] = (), seed: int = 0
) -> Tensor:
    """Divide n items into hard or easy batches; each item is in at most one batch.

    n mod b items are left out; consecutive seeds leave out different items.

    Args:
        vectors: (n, d) one vector per training pair, of any length, on the device of the computation.
        size: batch size b.
        hard: whether the items of a batch resemble each other; otherwise batches are easy.
        sweeps: largest number of rounds that improve the objective by swaps between random pairs of batches.
        codes: vectors (n,) of integers, such as clip numbers; items that share a code are never in one hard batch.
        seed: seed of all draws; equal seeds produce equal partitions on the same machine.

    Returns:
        (n // b, b) rows, on the CPU.

    Raises:
        InputError: `size` is not in 2..n, or items with a common code cannot be separated.
    """
    check_partition(len(vectors), size, codes if hard else (), seed=seed)
    used = _used_rows(len(vectors), size, seed)
    generator = torch.Generator().manual_seed(seed)
    unit = F.normalize(vectors[used.to(vectors.device)].float(), dim=1)
    apart = torch.stack([code[used].cpu() for code in codes], 1) if hard and codes else None
    batches = _seeded_nearest(unit, size, apart, generator) if hard else _stratified(unit, size, generator)
    if apart is not None:
        batches = repair(batches, apart, generator)
    return used[refine(unit, batches, 1 if hard else -1, apart, sweeps, generator).cpu()]


def check_partition(count: int, size: int, codes: Sequence[Tensor], *, seed: int) -> None:
    """Check the necessary conditions of `partition` that do not depend on the vectors.

    Args:
        count: n items.
        size: see `partition`.
        codes: codes of hard batches, see `partition`.
        seed: see `partition`.

    Raises:
        InputError: `size` is not in 2..n, or the items with a common code outnumber the batches.
    """
    if not 2 <= size <= count:
        raise InputError(
            f"curriculum: batches of {size} cannot be built from {count} items; choose a batch size from 2 to the "
            "number of items (training.batch), or pass more items"
        )
    used = _used_rows(count, size, seed)
    for code in codes:
        largest, batches = int(code[used].unique(return_counts=True)[1].max()), len(used) // size
        if largest > batches:
            raise InputError(
                f"curriculum: {largest} items are duplicates of each other, but there are only {batches} batches to "
                "separate them; choose smaller batches (training.batch), or allow duplicates (method.dedupe=false)"
            )


def _used_rows(count: int, size: int, seed: int) -> Tensor:
    """Return the rows to use, in order; consecutive seeds leave out adjacent windows of one fixed random order."""
    over = count % size
    order = torch.randperm(count, generator=torch.Generator().manual_seed(0))
    left_out = order[(seed * over + torch.arange(over)) % count]
    mask = torch.ones(count, dtype=torch.bool)
    mask[left_out] = False
    return mask.nonzero()[:, 0]


def _seeded_nearest(vectors: Tensor, size: int, codes: Codes, generator: torch.Generator) -> Tensor:
    """Build each batch from a first item, drawn at random, and the unused items most similar to the first item.

    The similarities of several first items are computed in one matrix product. First items in an earlier batch are
    skipped, so the result is the same as for one first item at a time.
    """
    order = torch.randperm(len(vectors), generator=generator)
    unused = torch.ones(len(vectors), dtype=torch.bool, device=vectors.device)
    batches: list[list[int]] = []
    while len(batches) < len(vectors) // size:
        order = order[unused.cpu()[order]]
        seeds, order = order[:_SEEDS_AT_ONCE], order[_SEEDS_AT_ONCE:]
        similarities = vectors[seeds.to(vectors.device)] @ vectors.T
        for seed, scores in zip(seeds.tolist(), similarities, strict=True):
            if len(batches) < len(vectors) // size and bool(unused[seed]):
                unused[seed] = False
                batch = _fill(size, codes, scores.masked_fill(~unused, -torch.inf), seed)
                unused[torch.tensor(batch, device=vectors.device)] = False
                batches.append(batch)
    return torch.tensor(batches)


def _fill(size: int, codes: Codes, scores: Tensor, seed: int) -> list[int]:
    """Return the first item `seed` and the `size` - 1 free items with the highest scores.

    The score of a free item is finite. With `codes`, duplicates are avoided if the 4 * `size` best free items
    suffice.
    """
    if codes is None:
        return [seed, *scores.topk(size - 1).indices.tolist()]
    width = min(4 * size, int(scores.isfinite().sum()))
    best = scores.topk(width).indices.cpu()
    members = torch.cat([torch.tensor([seed]), best])
    clash = conflicts(codes, members, members)
    chosen = [0]
    for i in range(1, width + 1):
        if len(chosen) < size and not bool(clash[i, chosen].any()):
            chosen.append(i)
    rest = sorted(set(range(1, width + 1)) - set(chosen))  # clashes are repaired afterwards
    return members[torch.tensor((chosen + rest)[:size])].tolist()


def _stratified(vectors: Tensor, size: int, generator: torch.Generator) -> Tensor:
    """Build batches (n // size, size) with one item from each of `size` clusters.

    The centers of the clusters are those of spherical k-means. Each cluster is assigned the same number of items.
    """
    count = len(vectors) // size
    picks = torch.randperm(len(vectors), generator=generator)[:size]
    centers = vectors[picks.to(vectors.device)]
    for _ in range(_ROUNDS):
        nearest = (vectors @ centers.T).argmax(1)
        sums = torch.zeros_like(centers).index_add_(0, nearest, vectors)
        centers = torch.where(sums.norm(dim=1, keepdim=True) > 0, F.normalize(sums, dim=1), centers)
    clusters = _balanced((vectors @ centers.T).cpu(), count)
    shuffled = [rows[torch.randperm(count, generator=generator)] for rows in clusters]
    return torch.stack(shuffled, 1)


def _balanced(scores: Tensor, capacity: int) -> list[Tensor]:
    """Assign rows to clusters of `capacity` rows by `scores` (rows, clusters); return the rows of each cluster.

    The number of rows is the number of clusters times `capacity`. Rows are assigned in descending order of the
    difference between their two best scores. Each row is assigned to its best cluster that is not full.
    """
    top = scores.topk(min(2, scores.shape[1]), dim=1).values
    order = (top[:, 0] - top[:, -1]).argsort(descending=True).tolist()
    members: list[list[int]] = [[] for _ in range(scores.shape[1])]
    preferences = scores.argsort(1, descending=True).tolist()
    for row in order:
        cluster = next(c for c in preferences[row] if len(members[c]) < capacity)
        members[cluster].append(row)
    return [torch.tensor(rows) for rows in members]
