"""Selections of pairs: all pairs, random pairs, one pair per class, and the pairs of the multi-similarity loss.

Reference: Xie et al., On negative sampling for contrastive audio-text retrieval, ICASSP 2023, https://doi.org/10.1109/ICASSP49357.2023.10095319
Reference: Sohn, Improved deep metric learning with multi-class N-pair loss objective, NIPS 2016, https://papers.nips.cc/paper/2016/hash/6b180037abbebea991d8b1232f8a8ca9-Abstract.html
Reference: Wang et al., Multi-similarity loss with general pair weighting for deep metric learning, CVPR 2019, https://arxiv.org/abs/1904.06627
"""

import torch

from aadml.comparison import Comparison
from aadml.comparison.options import Margin
from aadml.comparison.row_choice import drawn
from aadml.feature_extraction.ground.options import removing


def everything(comparison: Comparison, generator: torch.Generator) -> Comparison:
    """Select every anchor, positive and negative.

    Args:
        comparison: a anchors against c candidates.
        generator: not used.
    """
    return comparison


@removing(positive="random")
def random_negative(comparison: Comparison, generator: torch.Generator) -> Comparison:
    """Select one positive and one negative per anchor, uniformly at random.

    If each anchor has one positive, the selection is the random strategy of Xie et al. (ICASSP 2023).

    Reference: Xie et al., On negative sampling for contrastive audio-text retrieval, ICASSP 2023, https://doi.org/10.1109/ICASSP49357.2023.10095319

    Args:
        comparison: a anchors against c candidates.
        generator: generator of the draws.
    """
    positives = drawn(comparison.positives, generator)
    return comparison.narrow(positives, drawn(comparison.negatives, generator))


@removing(positive="random")
def one_pair_a_class(comparison: Comparison, generator: torch.Generator) -> Comparison:
    """Select one anchor and one positive per class; the positives of the other selected anchors are the negatives.

    The masks define the classes. Anchors i and j are of the same class if the positive of j is not a negative of i. For
    pairs by id a class is a clip, so one of its captions is selected.

    Args:
        comparison: a anchors against c candidates.
        generator: generator that draws the anchor and the positive of each class.
    """
    positives, negatives = drawn(comparison.positives, generator), comparison.negatives
    if not positives.numel():
        return comparison.narrow(rows=torch.arange(0))
    usable, column = positives.any(1), positives.int().argmax(1)
    lots = torch.randperm(len(usable), generator=generator, device=generator.device).to(usable.device)
    apart = negatives[:, column] | ~usable  # (a, a): whether an anchor's positive is a negative of another anchor
    first = lots.expand(len(lots), -1).masked_fill(apart, len(lots)).amin(1) == lots
    rows = (first & usable).nonzero()[:, 0]
    column_drawn = torch.zeros_like(positives[0]).index_fill_(0, column[rows], True)
    return comparison.narrow(positives, negatives & column_drawn, rows=rows)


def multi_similarity(comparison: Comparison, generator: torch.Generator, *, margin: Margin = 0.1) -> Comparison:
    """Select the positives and negatives that are hard relative to the anchor's other pairs, by cosine.

    A positive is selected if its cosine is less than the highest cosine of the anchor's negatives plus `margin`. A
    negative is selected if its cosine is above the lowest cosine of the anchor's positives minus `margin`. An anchor
    without positives or without negatives keeps no pairs.

    Args:
        comparison: a anchors against c candidates.
        generator: not used.
        margin: epsilon, tolerance of both bounds (0.1: Wang et al.).
    """
    cosine, positives, negatives = comparison.cosine.detach(), comparison.positives, comparison.negatives
    least_alike = cosine.masked_fill(~positives, torch.inf)
    most_alike = cosine.masked_fill(~negatives, -torch.inf)
    if not cosine.numel():
        return comparison
    return comparison.narrow(
        positives & (cosine - margin < most_alike.amax(1, keepdim=True)),
        negatives & (cosine + margin > least_alike.amin(1, keepdim=True)),
    )
