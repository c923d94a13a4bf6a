"""Numbers of violating triplets of each pair, which reduce the sum over all triplets to a sum over pairs."""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

BLOCK = 1 << 17
"""Number of entries sorted at once: a mebibyte of keys, which stays in a core's cache. With far fewer entries, threads
would mostly wait for the interpreter between passes."""

FLAG = np.uint32(1 << 31)
INDEX = np.uint32((1 << 31) - 1)


def violations(far: Tensor, positives: Tensor, negatives: Tensor, margin: float) -> Tensor:
    """Return the number of violating triplets that contain each pair, with a minus sign for negatives.

    A triplet (i, p, n) violates the margin if far_ip + margin > far_in, strictly. The sum of all hinges of anchor i
    is

        sum over p, n of max(0, far_ip - far_in + margin)  =  sum_j count_ij far_ij  +  margin sum_p count_ip

    The counts are constant between kinks, so they are the gradient of the sum with respect to `far`. The time is
    O(a c log c). The memory beyond the result is O(a c). Float32 on the CPU needs only one block of rows per thread
    if some rows have several positives and some rows have several negatives.

    Args:
        far: (a, c) scores that are smaller for nearer candidates, without gradient.
        positives: (a, c) zeros and ones, of the type of `far`.
        negatives: (a, c) zeros and ones, disjoint from `positives`.
        margin: required difference, in the units of `far`.

    Returns:
        (a, c) of the type of `far`. The entry of a positive is the number of negatives that violate the margin with
        the positive. The entry of a negative is minus the number of positives that violate the margin with the
        negative. All other entries are 0.
    """
    counts: Tensor = torch.ops.aadml.violations(far, positives, negatives, margin)
    return counts


# `torch.library.custom_op` would import `torch._dynamo` at the first call, which takes a second
torch.library.define("aadml::violations", "(Tensor far, Tensor positives, Tensor negatives, float margin) -> Tensor")


def _counts(far: Tensor, positives: Tensor, negatives: Tensor, margin: float) -> Tensor:
    if far.numel() == 0:
        return torch.zeros_like(far)
    if far.device.type != "cpu":
        return _by_search(far, positives, negatives, margin)  # the only way without a value read from the device
    sides = positives, negatives
    most: list[float] = torch.stack([side.sum(1).max() for side in sides]).tolist()
    if min(most) <= 1:
        return _beside_one(far, positives, negatives, margin, sides[most[0] > 1])
    if far.dtype == torch.float32 and sys.byteorder == "little":
        return _by_packed_sort(far, positives, negatives, margin)
    return _by_search(far, positives, negatives, margin)


torch.library.impl("aadml::violations", "CompositeExplicitAutograd", _counts)


def _shape_of_counts(far: Tensor, positives: Tensor, negatives: Tensor, margin: float) -> Tensor:
    """Return an empty tensor of the result's shape for `torch.compile`, where `violations` is one operator."""
    return torch.empty_like(far, memory_format=torch.contiguous_format)


torch.library.register_fake("aadml::violations", _shape_of_counts)


def _beside_one(far: Tensor, positives: Tensor, negatives: Tensor, margin: float, single: Tensor) -> Tensor:
    """Count violations without sorting, if each row of the mask `single` contains at most one 1.

    `single` is `positives` or `negatives`. Pairs by id and most selections have such a mask.
    """
    column = single.argmax(1, keepdim=True)
    value, present = far.gather(1, column), single.gather(1, column)
    others, hit = torch.empty_like(far), (negatives if single is positives else positives) * present
    if single is positives:
        torch.lt(far, value + margin, out=others)
    else:
        torch.gt(far + margin, value, out=others)
    counts = hit.mul_(others)
    counts.scatter_(1, column, -counts.sum(1, keepdim=True))
    return counts.neg_() if single is positives else counts


def _by_search(far: Tensor, positives: Tensor, negatives: Tensor, margin: float) -> Tensor:
    """Count violations on any device and in any precision.

    The positives are searched in the sorted negatives, and the negatives in the sorted positives.
    """
    shifted = far + margin
    anchored, against = positives > 0, negatives > 0
    reach = shifted.masked_fill(~anchored, torch.inf).sort(1).values
    ahead = far.masked_fill(~against, torch.inf).sort(1).values
    below = torch.searchsorted(ahead, shifted.contiguous())
    above = anchored.sum(1, keepdim=True) - torch.searchsorted(reach, far.contiguous(), right=True)
    return below.masked_fill(~anchored, 0).sub_(above.masked_fill_(~against, 0)).to(far.dtype)


def _by_packed_sort(far: Tensor, positives: Tensor, negatives: Tensor, margin: float) -> Tensor:
    """Count violations in float32 on the CPU, block by block, by a vectorized sort of 64-bit keys.

    A key contains the value, side and position of an entry (see `_packed_keys`). The sort is several times faster
    than an argsort or a search, and it releases the interpreter lock for threads.
    """
    counts = torch.empty_like(far, memory_format=torch.contiguous_format)
    values, chosen, others, filled = far.numpy(), positives.numpy(), negatives.numpy(), counts.numpy()

    def count(rows: slice) -> None:
        _count_block(values[rows], chosen[rows], others[rows], filled[rows], margin)

    blocks = _blocks(*far.shape)
    threads = min(torch.get_num_threads(), len(blocks))
    for _ in map(count, blocks) if threads < 2 else _pool(os.getpid(), threads).map(count, blocks):
        pass
    return counts


def _blocks(rows: int, columns: int) -> list[slice]:
    """Divide the rows into blocks that fit a core's cache, and into enough blocks for all threads."""
    height = max(1, min(BLOCK // columns, -(-rows // torch.get_num_threads())))
    return [slice(start, start + height) for start in range(0, rows, height)]


@cache
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    """Return the thread pool of a process; a forked child must not wait for threads of its parent."""
    return ThreadPoolExecutor(threads, thread_name_prefix=f"violations-{process}")


def _count_block(
    far: NDArray[np.float32],
    positives: NDArray[np.float32],
    negatives: NDArray[np.float32],
    counts: NDArray[np.float32],
    margin: float,
) -> None:
    """Fill `counts` for a block of rows; see `violations`."""
    columns = far.shape[1]
    keys = _packed_keys(far, positives, negatives, margin)
    keys.sort(axis=1)
    low = np.ascontiguousarray(keys.view(np.uint32)[:, ::2])
    aside = (low >> np.uint32(31)).view(np.int32)
    # number of negatives up to each entry: the count of a positive (NumPy's cumsum is slower and holds the lock)
    counted = torch.cumsum(torch.from_numpy(aside), 1, dtype=torch.int32).numpy()
    after = positives.sum(1).astype(np.int32)[:, None] - np.arange(1, columns + 1, dtype=np.int32)
    after += counted  # number of positives from each entry on: the count of a negative
    after += counted
    after *= aside
    counted -= after
    low &= INDEX
    counts.reshape(-1)[low.reshape(-1).astype(np.intp)] = counted.reshape(-1).astype(np.float32)


def _packed_keys(
    far: NDArray[np.float32], positives: NDArray[np.float32], negatives: NDArray[np.float32], margin: float
) -> NDArray[np.int64]:
    """Build sortable keys: the value in the high bits, then a bit for entries that are not positives, then position.

    At equal values a positive comes first, so that a hinge of exactly zero is not counted as a violation. Entries in
    neither mask are sorted to the end, where no pair counts them.
    """
    values: NDArray[np.float32] = positives * np.float32(margin)
    values += far
    met = positives + negatives
    if met.min() < 1:
        values[met == 0] = np.inf
    high = values.view(np.int32)
    if margin < 0 or far.min() < 0:
        high ^= (high >> 31) & np.int32(INDEX)
    low = (1 - positives).view(np.uint32)  # the bits of a one, moved up so that the highest is set
    low <<= np.uint32(2)
    low &= FLAG
    low += np.arange(far.size, dtype=np.uint32).reshape(far.shape)
    halves = np.empty((*far.shape, 2), np.uint32)
    halves[..., 0], halves[..., 1] = low, high.view(np.uint32)
    keys: NDArray[np.int64] = halves.view(np.int64)[..., 0]
    return keys
