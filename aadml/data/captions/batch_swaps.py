"""Swaps of items between batches, to improve a partition or to separate duplicates."""

import torch
from torch import Tensor

from aadml.feature_extraction.ground.errors import InputError

Codes = Tensor | None
"""(n, k) int64 codes; items that share any of the k codes are duplicates."""

_PAIRS_AT_ONCE = 128
_PATIENCE = 8  # sweeps with few swaps before the search ends
_MOVES = 4  # largest number of swaps of a pair of batches in one sweep


def conflicts(codes: Tensor, rows: Tensor, others: Tensor) -> Tensor:
    """Return the mask (..., r, o) of duplicates among the pairs of a row of `rows` and a row of `others`.

    Duplicates are different rows with a common code.

    Args:
        codes: (n, k) codes of the n rows; rows that share any of the k codes are duplicates.
        rows: (..., r) row numbers.
        others: (..., o) row numbers.
    """
    same = (codes[rows][..., :, None, :] == codes[others][..., None, :, :]).any(-1)
    return same & (rows[..., :, None] != others[..., None, :])


def refine(
    vectors: Tensor, batches: Tensor, sense: int, codes: Codes, sweeps: int, generator: torch.Generator
) -> Tensor:
    """Swap items between random disjoint pairs of batches to raise or lower the objective, sum_p |s_p|^2.

    s_p is the sum of the vectors e_i of the items in batch p. Swapping item i of batch p with item j of batch q
    changes the objective by 2 (s_p - s_q) . (e_j - e_i) + 2 |e_i - e_j|^2.

    Args:
        vectors: (n, d) unit vectors.
        batches: (m, b) rows, on the CPU.
        sense: +1 to raise the objective, -1 to lower it.
        codes: (n, k) codes; no swap moves an item into a batch with an item that shares one of the k codes. None for
            no constraint.
        sweeps: largest number of sweeps over all batches; the search ends early after sweeps with few swaps.
        generator: source of the random pairings.

    Returns:
        (m, b) rows, with an objective at least as high (`sense` +1) or at least as low (`sense` -1) as before.
    """
    batches = batches.clone()
    idle = 0
    for _ in range(sweeps if len(batches) > 1 else 0):
        order = torch.randperm(len(batches), generator=generator)
        pairs = order[: len(order) // 2 * 2].view(-1, 2)
        swapped = sum(_sweep(vectors, batches, part, sense, codes) for part in pairs.split(_PAIRS_AT_ONCE))
        idle = 0 if swapped > len(batches) // 100 else idle + 1
        if idle == _PATIENCE:
            break
    return batches


def _sweep(vectors: Tensor, batches: Tensor, pairs: Tensor, sense: int, codes: Codes) -> int:
    """Swap items between the two batches of each row of `pairs` (p, 2); return the number of swaps.

    Each pair of batches makes up to `_MOVES` swaps, always the swap that improves the objective most. `batches` is
    changed in place.
    """
    left, right = batches[pairs[:, 0]], batches[pairs[:, 1]]  # (p, b)
    mine, theirs = vectors[left.to(vectors.device)], vectors[right.to(vectors.device)]  # (p, b, d)
    pair, size = torch.arange(len(pairs)), left.shape[1]
    gap = (mine.sum(1) - theirs.sum(1))[..., None]  # (p, d, 1)
    swapped = 0
    for _ in range(_MOVES):
        # unit vectors: |e_i - e_j|^2 = 2 - 2 e_i . e_j
        change = 2 * ((theirs @ gap).transpose(1, 2) - mine @ gap) + 4 - 4 * mine @ theirs.transpose(1, 2)
        gain = (sense * change).cpu()
        if codes is not None:
            gain.masked_fill_(_clashes(codes, left, right), -torch.inf)
        best, place = gain.flatten(1).max(1)
        moving = pair[best > 1e-4]
        if not len(moving):
            break
        i, j = place[moving] // size, place[moving] % size
        left[moving, i], right[moving, j] = right[moving, j], left[moving, i]
        gap[moving, :, 0] += 2 * (theirs[moving, j] - mine[moving, i])
        mine[moving, i], theirs[moving, j] = theirs[moving, j], mine[moving, i]
        swapped += len(moving)
    batches[pairs[:, 0]], batches[pairs[:, 1]] = left, right
    return swapped


def _clashes(codes: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """Return the mask (p, i, j) of swaps that put item i of `left` or item j of `right` beside a duplicate."""
    cross = conflicts(codes, left, right)  # (p, i, j)
    j_duplicates = cross.sum(1, keepdim=True) - cross.long()  # duplicates of j in left, without i
    i_duplicates = cross.sum(2, keepdim=True) - cross.long()
    return (j_duplicates > 0) | (i_duplicates > 0)


def repair(batches: Tensor, codes: Tensor, generator: torch.Generator) -> Tensor:
    """Return the batches (m, b) with items swapped until no batch contains duplicates by `codes` (n, k).

    Raises:
        InputError: no swap separates a duplicate from the other items of its batch.
    """
    batches = batches.clone()
    for number in range(len(batches)):
        while bool((clash := conflicts(codes, batches[number], batches[number])).any()):
            place = int(clash.any(1).nonzero()[0])
            if not _moved(batches, number, place, codes, generator):
                raise InputError(
                    f"curriculum: duplicates cannot be separated into {len(batches)} batches of {batches.shape[1]} "
                    "items; choose smaller batches (training.batch), or allow duplicates (method.dedupe=false)"
                )
    return batches


def _moved(batches: Tensor, number: int, place: int, codes: Tensor, generator: torch.Generator) -> bool:
    """Swap an item with a suitable item of another batch; return whether a suitable item exists.

    After a suitable swap, neither of the two items is beside a duplicate.
    """
    batch = batches[number : number + 1]
    item = batch[:, place]
    others = torch.cat([batch[:, :place], batch[:, place + 1 :]], 1)
    for chosen in torch.randperm(len(batches), generator=generator).split(64):
        chosen = chosen[chosen != number]
        theirs = batches[chosen]  # (p, b)
        duplicates = conflicts(codes, theirs, item.expand(len(theirs), 1))[..., 0]  # duplicates of item, by position
        item_fits = (duplicates.sum(1, keepdim=True) - duplicates.long()) == 0
        other_fits = ~conflicts(codes, theirs, others.expand(len(theirs), -1)).any(2)
        swaps = (item_fits & other_fits).nonzero()
        if len(swaps):
            target, spot = int(chosen[swaps[0, 0]]), int(swaps[0, 1])
            batches[number, place], batches[target, spot] = batches[target, spot].item(), item.item()
            return True
    return False
