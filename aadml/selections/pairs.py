"""One pair per class (Sohn, Improved deep metric learning with multi-class N-pair loss objective, NIPS 2016)."""

import torch

from aadml.comparison import Comparison
from aadml.comparison.row_choice import drawn
from aadml.feature_extraction.ground.options import removing


@removing(positive="random")
def one_pair_a_class(comparison: Comparison, generator: torch.Generator) -> Comparison:
    """Select one anchor per class with one positive; its negatives are the positives of the other anchors.

    The masks define the classes: anchors i and j are of the same class if the positive of j is not a negative of i. For
    pairs by id a class is a clip, so one of its captions is selected.

    Args:
        comparison: a anchors against c candidates.
        generator: generator that draws the anchor of each class and its positive.
    """
    positives = drawn(comparison.positives, generator)
    rows, columns = positives.nonzero(as_tuple=True)
    lots = torch.randperm(len(rows), generator=generator, device=generator.device).to(rows.device)
    same_class = ~comparison.negatives[rows][:, columns]
    first = lots[None, :].expand_as(same_class).masked_fill(~same_class, len(rows)).amin(1) if len(rows) else lots
    is_first = first == lots
    column_drawn = torch.zeros(positives.shape[1], dtype=torch.bool, device=rows.device)
    column_drawn[columns[is_first]] = True
    return comparison.narrow(positives, comparison.negatives & column_drawn, rows=rows[is_first])
