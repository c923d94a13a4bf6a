"""Choosing one entry a row of a mask: the nearest, the farthest, one by lot. No gradient passes a choice."""

from typing import Literal, get_args

import torch
from torch import Tensor

from aadml.comparison import Comparison
from aadml.comparison.pairwise import counted
from feature_extraction.ground.errors import InputError

Positive = Literal["all", "random", "own", "hardest", "easiest"]
"""Which positives a selection keeps: every one, one by lot, the partner, the farthest, the nearest."""


def lowest(values: Tensor, mask: Tensor) -> Tensor:
    """Mark, in each row, the entry of `mask` with the lowest value: (a, c) -> (a, c) bool, nothing in an empty row.

    Args:
        values: (a, c) of any float type.
        mask: (a, c) bool.
    """
    if mask.shape[1] == 0:
        return mask
    best = values.detach().masked_fill(~mask, torch.inf).argmin(1, keepdim=True)
    return torch.zeros_like(mask).scatter_(1, best, True) & mask


def drawn(mask: Tensor, generator: torch.Generator) -> Tensor:
    """Mark one entry of `mask` a row, uniformly by lot: (a, c) -> (a, c) bool, nothing in an empty row."""
    counts = counted(mask)
    rows = counts.nonzero()[:, 0]
    lots = torch.rand(len(mask), generator=generator, device=generator.device, dtype=torch.float64).to(mask.device)
    place = torch.minimum((lots * counts).long(), counts - 1)[rows]
    column = mask.nonzero()[:, 1][(counts.cumsum(0) - counts)[rows] + place]
    one = torch.zeros_like(mask)
    one[rows, column] = True
    return one


def chosen_positives(
    comparison: Comparison, positive: str, generator: torch.Generator, far: Tensor | None = None
) -> Tensor:
    """Narrow the positives of every anchor.

    Args:
        comparison: a anchors against c candidates.
        positive: one of `Positive`.
        generator: of the lots.
        far: (a, c) smaller is nearer; without it there is no hardest and no easiest.

    Returns:
        (a, c) bool; at most one a row unless `positive` is "all". With "own" an anchor whose partner is no positive
        of it, or is absent, has none.

    Raises:
        InputError: another word.
    """
    positives = comparison.positives
    if positive == "all":
        return positives
    if positive == "random":
        return drawn(positives, generator)
    if positive == "own":
        return positives & (comparison.own[:, None] == torch.arange(positives.shape[1], device=positives.device))
    if far is not None and positive in ("hardest", "easiest"):
        return lowest(-far if positive == "hardest" else far, positives)
    possible = get_args(Positive) if far is not None else ("all", "random", "own")
    raise InputError(f"selection.positive: no '{positive}' here; there are {', '.join(possible)}")


def value_at(values: Tensor, one: Tensor) -> Tensor:
    """Return the detached value at the one marked entry of each row: (a, c) -> (a, 1); NaN in an empty row."""
    found = values.detach().masked_fill(~one, 0).sum(1, keepdim=True)
    return found.masked_fill(~one.any(1, keepdim=True), torch.nan)
