"""One pair per class (Sohn, NIPS 2016).

Reference: Sohn, Improved deep metric learning with multi-class N-pair loss objective, NIPS 2016, https://papers.nips.cc/paper/2016/hash/6b180037abbebea991d8b1232f8a8ca9-Abstract.html
"""

import torch
from torch import Tensor

from aadml.comparison import Comparison
from aadml.comparison.host_reads import read_once
from aadml.comparison.row_choice import drawn
from aadml.comparison.transfer import sent
from aadml.feature_extraction.ground.options import removing


@removing(positive="random")
def one_pair_a_class(comparison: Comparison, generator: torch.Generator) -> Comparison:
    """Select one anchor and one positive per class; the positives of the other selected anchors are the negatives.

    The masks define the classes. Anchors i and j are of the same class if the positive of j is not a negative of i. For
    pairs by id a class is a clip, so one of its captions is selected.

    Args:
        comparison: a anchors against c candidates.
        generator: generator that draws the anchor and the positive of each class.
    """
    codes = comparison.codes_of_both()
    positives, negatives = drawn(comparison.positives, generator), comparison.negatives
    if not positives.numel():
        return comparison.narrow(rows=torch.arange(0))
    usable, column = positives.any(1), positives.int().argmax(1)
    lots = sent(torch.randperm(len(usable), generator=generator, device=generator.device), usable.device)
    apart = negatives[:, column] | ~usable  # (a, a): whether an anchor's positive is a negative of another anchor
    first = lots.expand(len(lots), -1).masked_fill(apart, len(lots)).amin(1) == lots
    rows = _marked(first & usable, codes)
    column_drawn = torch.zeros_like(positives[0]).index_fill_(0, column[rows], True)
    return comparison.narrow(positives, negatives & column_drawn, rows=rows)


def _marked(first: Tensor, codes: Tensor | None) -> Tensor:
    """Return the marked rows, one per class; on a GPU, the number of classes is read once per batch of `codes`."""
    if codes is None or first.device.type == "cpu":
        return first.nonzero()[:, 0]
    classes = read_once(codes, "number of classes", lambda: len(codes.unique()))
    return torch.nonzero_static(first, size=classes)[:, 0]
