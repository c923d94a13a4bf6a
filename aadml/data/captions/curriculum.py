"""Batches of a chosen difficulty (3CMLF, Equations 2 and 3): partitions of the training pairs.

A batch is hard if its items resemble each other. Let e_i be unit vectors and s_m their sum over batch m. The sum of
all similarities within batches is  sum_m |s_m|^2 - n;  easy batches minimize the sum, and hard batches maximize it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from aadml.data.captions.batch_swaps import Codes, conflicts, refine, repair
from aadml.feature_extraction.ground.errors import InputError

_SEEDS_AT_ONCE = 32
_ROUNDS = 12  # of k-means


@dataclass(frozen=True)
class _Problem:
    """Input of the builders: unit vectors (n, d) of the used rows, batch size, codes."""

    vectors: Tensor
    size: int
    codes: Codes
    generator: torch.Generator

    @property
    def batches(self) -> int:
        return len(self.vectors) // self.size


def objective(vectors: Tensor, batches: Tensor) -> float:
    """Compute sum_m |s_m|^2 of the vectors (n, d), scaled to length 1, over batches (m, b) of rows."""
    unit = F.normalize(vectors, dim=1)
    return sum(float(unit[rows].sum(0).double().square().sum()) for rows in batches)


def partition(
    vectors: Tensor,
    size: int,
    *,
    difficulty: str,
    sweeps: int = 40,
    codes: Sequence[Tensor] = (),
    seed: int = 0,
) -> Tensor:
    """Divide n items into batches of one difficulty; each item is in at most one batch.

    n mod b items are left out; consecutive seeds leave out different items.

    Args:
        vectors: (n, d) one vector per training pair, of any length, on the device of the computation.
        size: batch size b.
        difficulty: "easy", "median" (random) or "hard".
        sweeps: rounds of swaps between random pairs of batches, which improve the objective.
        codes: (n,) integers each, such as clip numbers; items that share a code are never in one hard batch.
        seed: seed of all draws; equal seeds give equal partitions on the same machine.

    Returns:
        (n // b, b) rows, on the CPU.

    Raises:
        InputError: too few items, unknown names, or more items share a code than there are batches.
    """
    if difficulty not in ("easy", "median", "hard"):
        raise InputError(f"curriculum: '{difficulty}' is not a difficulty; choose from easy, median, hard")
    check_partition(len(vectors), size, codes if difficulty == "hard" else (), seed=seed)
    used = _used_rows(len(vectors), size, seed)
    generator = torch.Generator().manual_seed(seed)
    if difficulty == "median":
        return used[torch.randperm(len(used), generator=generator)].view(-1, size)
    unit = F.normalize(vectors[used.to(vectors.device)].float(), dim=1)
    hard = difficulty == "hard"
    apart = torch.stack([code[used].cpu() for code in codes], 1) if hard and codes else None
    problem = _Problem(unit, size, apart, generator)
    batches = _seeded_nearest(problem) if hard else _stratified(problem)
    if apart is not None:
        batches = repair(batches, apart, generator)
    return used[refine(unit, batches, 1 if hard else -1, apart, sweeps, generator).cpu()]


def check_partition(count: int, size: int, codes: Sequence[Tensor] = (), *, seed: int = 0) -> None:
    """Check, before vectors are computed, that `partition` can divide the items.

    Args:
        count: n items.
        size: see `partition`.
        codes: codes of hard batches, see `partition`.
        seed: see `partition`.

    Raises:
        InputError: `size` is not 2 to n, or more items share a code than there are batches.
    """
    if not 2 <= size <= count:
        raise InputError(
            f"curriculum: batches of {size} cannot be built from {count} items; choose smaller batches (training.batch)"
        )
    used = _used_rows(count, size, seed)
    for code in codes:
        largest, batches = int(code[used].unique(return_counts=True)[1].max()), len(used) // size
        if largest > batches:
            raise InputError(
                f"curriculum: {largest} items are duplicates of each other, but there are only {batches} batches to "
                "keep them apart; choose smaller batches (training.batch), or turn the guard off (method.dedupe=false)"
            )


def _used_rows(count: int, size: int, seed: int) -> Tensor:
    """Return the rows of all batches, in order; the windows of left-out rows of consecutive seeds are adjacent."""
    over = count % size
    order = torch.randperm(count, generator=torch.Generator().manual_seed(0))
    left_out = order[(seed * over + torch.arange(over)) % count]
    mask = torch.ones(count, dtype=torch.bool)
    mask[left_out] = False
    return mask.nonzero()[:, 0]


def _seeded_nearest(problem: _Problem) -> Tensor:
    """Build each batch from the next unused item in random order and the items most similar to it.

    The similarities of several seeds are computed in one matrix product. A seed that another batch has used is skipped,
    so the result is the same as for one seed at a time.
    """
    vectors = problem.vectors
    order = torch.randperm(len(vectors), generator=problem.generator).tolist()
    unused = torch.ones(len(vectors), dtype=torch.bool, device=vectors.device)
    place = 0
    batches: list[list[int]] = []
    while len(batches) < problem.batches:
        free = unused.cpu()
        seeds: list[int] = []
        while place < len(order) and len(seeds) < _SEEDS_AT_ONCE:
            if free[order[place]]:
                seeds.append(order[place])
            place += 1
        similarities = vectors[torch.tensor(seeds, device=vectors.device)] @ vectors.T
        for seed, scores in zip(seeds, similarities, strict=True):
            if len(batches) == problem.batches or not bool(unused[seed]):
                continue
            unused[seed] = False
            batch = _fill(problem, scores.masked_fill(~unused, -torch.inf), seed)
            unused[torch.tensor(batch, device=vectors.device)] = False
            batches.append(batch)
    return torch.tensor(batches)


def _fill(problem: _Problem, scores: Tensor, seed: int) -> list[int]:
    """Return the seed and the b - 1 best free items (score above minus infinity), without duplicates if possible."""
    free = int(scores.isfinite().sum())
    if problem.codes is None:
        return [seed, *scores.topk(problem.size - 1).indices.tolist()]
    width = min(4 * problem.size, free)
    best = scores.topk(width).indices.cpu()
    members = torch.cat([torch.tensor([seed]), best])
    clash = conflicts(problem.codes, members, members)
    chosen = [0]
    for i in range(1, width + 1):
        if len(chosen) == problem.size:
            break
        if not bool(clash[i, chosen].any()):
            chosen.append(i)
    rest = sorted(set(range(1, width + 1)) - set(chosen))  # clashes are repaired afterwards
    return members[torch.tensor((chosen + rest)[: problem.size])].tolist()


def _stratified(problem: _Problem) -> Tensor:
    """Divide into b clusters of equal size (balanced spherical k-means); each batch has one item of each cluster."""
    vectors, count = problem.vectors, problem.batches
    picks = torch.randperm(len(vectors), generator=problem.generator)[: problem.size]
    centers = vectors[picks.to(vectors.device)]
    for _ in range(_ROUNDS):
        nearest = (vectors @ centers.T).argmax(1)
        sums = torch.zeros_like(centers).index_add_(0, nearest, vectors)
        centers = torch.where(sums.norm(dim=1, keepdim=True) > 0, F.normalize(sums, dim=1), centers)
    clusters = _balanced((vectors @ centers.T).cpu(), count)
    shuffled = [rows[torch.randperm(count, generator=problem.generator)] for rows in clusters]
    return torch.stack(shuffled, 1)


def _balanced(scores: Tensor, capacity: int) -> list[Tensor]:
    """Assign n = clusters * capacity rows to clusters by scores (n, clusters), rows with the largest margin first."""
    ranked = scores.argsort(1, descending=True)
    top = scores.topk(min(2, scores.shape[1]), dim=1).values
    order = (top[:, 0] - top[:, -1]).argsort(descending=True).tolist()
    members: list[list[int]] = [[] for _ in range(scores.shape[1])]
    preferences = ranked.tolist()
    for row in order:
        cluster = next(c for c in preferences[row] if len(members[c]) < capacity)
        members[cluster].append(row)
    return [torch.tensor(rows) for rows in members]
