"""Contrastive loss (Hadsell, Chopra and LeCun, CVPR 2006)."""

import torch

from aadml.comparison import Comparison, Terms
from aadml.comparison.options import Margin
from aadml.comparison.pairwise import counted


def contrastive(comparison: Comparison, *, margin: Margin = 1.0, legacy_eq9_distance: bool = False) -> Terms:
    """Pull every positive onto its anchor, push every negative out of a ball of radius `margin`.

        total_i = sum over p in P_i of  1/2 D_ip^2  +  sum over n in N_i of  1/2 max(0, margin - D_in)^2

    D is the Euclidean distance. Equation 9 of the AADML paper (Zeng et al., ICMR 2024) swaps the two cases and takes
    the squared distance for D; the swap is a slip, the distance is an option here.

    Args:
        comparison: a anchors against c candidates.
        margin: how far negatives are pushed, in distance (1.0: AADML, section 5.2).
        legacy_eq9_distance: take the squared distance for D, as Equation 9 prints it.

    Returns:
        Per anchor the sum and the number of pairs that cost something. Positives cost without negatives and the other
        way round; an anchor with neither costs nothing.

    Example:
        >>> comparison = Comparison.of_labels(audio, visual, labels, labels)
        >>> terms = contrastive(comparison, margin=1.0)
        >>> loss = terms.total.sum() / terms.active.sum().clamp_min(1)
        >>> loss.backward()
        >>> optimizer.step()
        >>> optimizer.zero_grad()
    """
    distance = comparison.squared_distance if legacy_eq9_distance else comparison.distance
    pairs = comparison.positives | comparison.negatives
    gap = torch.where(comparison.positives, distance, margin - distance).relu().masked_fill(~pairs, 0)
    return Terms(0.5 * gap.square().sum(1), counted(gap > 0), counted(pairs))
