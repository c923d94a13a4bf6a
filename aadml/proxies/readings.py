"""What Equation 7 of the AADML paper may mean: four ways to let an anchor attend over its neighbors.

The paper assigns query, key and value in three different ways (Equation 7, section 4.2.1, Figure 2), and does not say
whether the softmax runs over the neighbors or over one key at a time. Over one key a softmax is 1: the call is an
affine map of its value, and query and key get no gradient. The caption of Figure 2 (R4: keys are the neighbors, all
values the anchor) is the same affine map as R1, and has no entry of its own. Nor has R2 (section 4.2.1 taken
literally: one call a neighbor, which is the value), an affine map of the neighbors' mean.

All readings take a anchors with s keys each:

    attention  who computes it
    anchors    (a, d)
    asking     (a, 1, d)
    keys       (a, s, d)
    mask       (a, s) bool, true where there is a key

and return (a, d); rows without any key are not defined, except in R1 and R6.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from aadml.proxies.attention import Attention


@dataclass(frozen=True)
class Keys:
    """What the anchors of a batch attend with and over; see the module's docstring for shapes."""

    anchors: Tensor
    asking: Tensor
    keys: Tensor
    mask: Tensor


def literal_equation(attention: Attention, given: Keys) -> Tensor:
    """R1, Equation 7 taken literally: one call a neighbor, with the anchor as value; an affine map of the anchor."""
    values = given.anchors[:, None].expand_as(given.keys).flatten(0, 1)[:, None]
    asking, keys = (part.expand_as(given.keys).flatten(0, 1)[:, None] for part in (given.asking, given.keys))
    calls: Tensor = attention(asking, keys, values, given.mask.new_ones(len(keys), 1)).view_as(given.keys)
    mask = _some(given.mask)
    share = mask.to(calls.dtype) / mask.sum(1, keepdim=True).clamp_min(1)
    return (share[:, :, None] * calls).sum(1)


def pooling(attention: Attention, given: Keys) -> Tensor:
    """R3: one softmax over the neighbors, which are keys and values."""
    return _joint(attention, given.asking, given.keys, given.mask)


def batch_mixing(attention: Attention, given: Keys) -> Tensor:
    """R5: the batch handed over as one sequence, so that every anchor attends to the whole batch.

    Query: the batch; key: everybody's j-th neighbor; value: the anchors; the mean over j. The result depends on who
    else is in the batch.
    """
    asking = given.asking.expand_as(given.keys)
    calls = [
        attention(asking[None, :, j], given.keys[None, :, j], given.anchors[None], given.mask[None, :, j])[0]
        for j in range(given.keys.shape[1])
    ]
    there = given.mask.any(0).to(given.anchors.dtype)
    return (torch.stack(calls) * there[:, None, None]).sum(0) / there.sum().clamp_min(1)


def pooling_with_self(attention: Attention, given: Keys) -> Tensor:
    """R6: as R3, with the anchor itself among keys and values."""
    keys = torch.cat([given.anchors[:, None], given.keys], 1)
    mask = torch.cat([torch.ones_like(given.mask[:, :1]), given.mask], 1)
    return _joint(attention, given.asking, keys, mask)


READINGS: dict[str, Callable[[Attention, Keys], Tensor]] = {
    "R1": literal_equation,
    "R3": pooling,
    "R5": batch_mixing,
    "R6": pooling_with_self,
}


def _joint(attention: Attention, asking: Tensor, keys: Tensor, mask: Tensor) -> Tensor:
    attended: Tensor = attention(asking, keys, keys, mask)
    return attended[:, 0]


def _some(mask: Tensor) -> Tensor:
    """Let anchors without neighbors attend to whatever stands there: their value is the anchor in any case."""
    return mask | ~mask.any(1, keepdim=True)
