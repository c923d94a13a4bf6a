"""SELECTIONS: which anchors, positives and negatives of a comparison count, by name."""

from collections.abc import Callable

import torch

from aadml.comparison import Comparison

Selection = Callable[..., Comparison]
"""A function `(comparison, generator, *, options) -> Comparison` that narrows masks, on detached scores."""


def everything(comparison: Comparison, generator: torch.Generator) -> Comparison:
    """Keep every anchor, positive and negative."""
    return comparison


SELECTIONS: dict[str, Selection] = {
    "all": everything,
}
