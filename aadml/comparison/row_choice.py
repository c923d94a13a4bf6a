"""Selection of one entry per row of a mask: the nearest, the farthest, or a random one, without gradient."""

from typing import Literal

import torch
from torch import Tensor

from aadml.comparison import Comparison
from aadml.comparison.transfer import sent

Positive = Literal["all", "random", "own", "hardest"]
"""Positives of a selection: all, a random one, the partner, or the farthest."""


def lowest(values: Tensor, mask: Tensor) -> Tensor:
    """Return the mask (a, c) of the lowest value in each row, among the true entries of `mask`.

    A row without true entries remains without true entries.

    Args:
        values: (a, c) of any float type.
        mask: (a, c) bool.
    """
    if mask.shape[1] == 0:
        return mask
    best = values.detach().masked_fill(~mask, torch.inf).argmin(1, keepdim=True)
    return torch.zeros_like(mask).scatter_(1, best, True) & mask


def drawn(mask: Tensor, generator: torch.Generator) -> Tensor:
    """Draw one true entry of each row of `mask` (a, c) uniformly, and return the mask (a, c) of these entries.

    A row without true entries remains without true entries.
    """
    if mask.shape[1] == 0:
        return mask
    return torch.zeros_like(mask).scatter_(1, columns_by_lot(mask, generator)[:, None], True) & mask


def columns_by_lot(mask: Tensor, generator: torch.Generator) -> Tensor:
    """Draw one true entry of each row of `mask` (a, c) uniformly, and return the columns (a,) of these entries.

    The column is arbitrary for a row without true entries.
    """
    if mask.shape[1] == 0:
        return torch.zeros(len(mask), dtype=torch.int64, device=mask.device)
    ranks = mask.cumsum(1, dtype=torch.int32)
    counts = ranks[:, -1]
    lots = torch.rand(len(mask), generator=generator, device=generator.device, dtype=torch.float64)
    place = (sent(lots, mask.device) * counts).int().minimum((counts - 1).clamp_min(0))
    return torch.searchsorted(ranks, place[:, None] + 1)[:, 0].clamp_max_(mask.shape[1] - 1)


def own_positives(comparison: Comparison) -> Tensor:
    """Return the mask (a, c) of the positives that are the partners of their anchors."""
    column = torch.arange(comparison.positives.shape[1], device=comparison.positives.device)
    return comparison.positives & (comparison.own[:, None] == column)


def chosen_positives(comparison: Comparison, positive: Positive, generator: torch.Generator, far: Tensor) -> Tensor:
    """Return the selected positives of every anchor.

    Args:
        comparison: a anchors against c candidates.
        positive: one of `Positive`.
        generator: generator of the random choice.
        far: (a, c) dissimilarity, for "hardest".

    Returns:
        (a, c) bool; at most one positive per row unless `positive` is "all".
    """
    if positive == "random":
        return drawn(comparison.positives, generator)
    if positive == "own":
        return own_positives(comparison)
    return comparison.positives if positive == "all" else lowest(-far, comparison.positives)


def value_at(values: Tensor, mark: Tensor) -> Tensor:
    """Return the detached values (a, 1) of `values` (a, c) at the single true entry in each row of `mark` (a, c).

    The value is NaN for a row without a true entry.
    """
    marked = values.detach().masked_fill(~mark, 0).sum(1, keepdim=True)
    return marked.masked_fill(~mark.any(1, keepdim=True), torch.nan)
