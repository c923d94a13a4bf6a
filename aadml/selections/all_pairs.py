"""The whole comparison: every triplet of a batch, XIE's full mini-batch."""

import torch

from aadml.comparison import Comparison


def everything(comparison: Comparison, generator: torch.Generator) -> Comparison:
    """Select every anchor, positive and negative.

    Args:
        comparison: a anchors against c candidates.
        generator: not used.
    """
    return comparison
