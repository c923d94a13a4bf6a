"""Readings of Equation 7 of the AADML paper: four ways for an anchor to attend over its neighbors.

The paper assigns query, key and value in three different ways (Equation 7, section 4.2.1, Figure 2), and leaves
open whether the softmax is over the neighbors or over one key at a time. Over one key, a softmax is 1. The
attention is then an affine map of the value, and query and key have no gradient.

READINGS has no entry for two further readings. R4 (caption of Figure 2: neighbors as keys, the anchor as the value
of every key) is the same affine map as R1. R2 (section 4.2.1 literally: one call per neighbor, with the neighbor as
value) is an affine map of the neighbors' mean.

Arguments of a reading, for `a` anchors with s keys each:

    attention  the attention module
    anchors    (a, d)
    queries    (a, 1, d)
    keys       (a, s, d)
    mask       (a, s) bool, true for valid keys

A reading returns (a, d). Rows without valid keys have no meaning, except in R1 and R6.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from aadml.proxies.attention import Attention


@dataclass(frozen=True)
class Keys:
    """Anchors, queries and keys of a batch; see the module's docstring for shapes."""

    anchors: Tensor
    queries: Tensor
    keys: Tensor
    mask: Tensor


def literal_equation(attention: Attention, inputs: Keys) -> Tensor:
    """Compute reading R1 (a, d): Equation 7 literally, with one call of `attention` for each neighbor.

    The value of every call is the anchor, so R1 is an affine map of the anchor. The result is the mean of the
    calls.
    """
    values = inputs.anchors[:, None].expand_as(inputs.keys).flatten(0, 1)[:, None]
    queries, keys = (part.expand_as(inputs.keys).flatten(0, 1)[:, None] for part in (inputs.queries, inputs.keys))
    calls: Tensor = attention(queries, keys, values, inputs.mask.new_ones(len(keys), 1)).view_as(inputs.keys)
    mask = inputs.mask | ~inputs.mask.any(1, keepdim=True)  # without neighbors, any key: its value is the anchor
    share = mask.to(calls.dtype) / mask.sum(1, keepdim=True).clamp_min(1)
    return (share[:, :, None] * calls).sum(1)


def pooling(attention: Attention, inputs: Keys) -> Tensor:
    """Compute reading R3 (a, d): attention with one softmax over the neighbors, which are the keys and the values."""
    return _joint(attention, inputs.queries, inputs.keys, inputs.mask)


def batch_mixing(attention: Attention, inputs: Keys) -> Tensor:
    """Compute reading R5 (a, d), in which every anchor attends to the whole batch as one sequence.

    Attention number j has the batch as queries, the j-th neighbors of all anchors as keys, and the anchors as
    values. The result is the mean over all j with a valid key, and depends on the composition of the batch.
    """
    queries = inputs.queries.expand_as(inputs.keys)
    calls = [
        attention(queries[None, :, j], inputs.keys[None, :, j], inputs.anchors[None], inputs.mask[None, :, j])[0]
        for j in range(inputs.keys.shape[1])
    ]
    used = inputs.mask.any(0).to(inputs.anchors.dtype)
    return (torch.stack(calls) * used[:, None, None]).sum(0) / used.sum().clamp_min(1)


def pooling_with_self(attention: Attention, inputs: Keys) -> Tensor:
    """Compute reading R6 (a, d): attention with one softmax over the anchor and its neighbors.

    The anchor and its neighbors are the keys and the values.
    """
    keys = torch.cat([inputs.anchors[:, None], inputs.keys], 1)
    mask = torch.cat([torch.ones_like(inputs.mask[:, :1]), inputs.mask], 1)
    return _joint(attention, inputs.queries, keys, mask)


READINGS: dict[str, Callable[[Attention, Keys], Tensor]] = {
    "R1": literal_equation,
    "R3": pooling,
    "R5": batch_mixing,
    "R6": pooling_with_self,
}


def _joint(attention: Attention, queries: Tensor, keys: Tensor, mask: Tensor) -> Tensor:
    attended: Tensor = attention(queries, keys, keys, mask)
    return attended[:, 0]
