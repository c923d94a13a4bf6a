"""Contrastive loss (Hadsell, Chopra and LeCun, CVPR 2006).

Reference: Hadsell et al., Dimensionality reduction by learning an invariant mapping, CVPR 2006, https://doi.org/10.1109/CVPR.2006.100
"""

import torch

from aadml.comparison import Comparison, Terms
from aadml.comparison.options import Margin
from aadml.losses.kernels.row_blocks import Costs, Rows, counted, summed
from aadml.losses.kernels.scores import scores_of


def contrastive(comparison: Comparison, *, margin: Margin = 1.0, legacy_eq9_distance: bool = False) -> Terms:
    """Compute the loss that pulls positives onto their anchor and pushes negatives beyond the distance `margin`.

        total_i = sum over p in P_i of  1/2 D_ip^2  +  sum over n in N_i of  1/2 max(0, margin - D_in)^2

    D is the Euclidean distance. Equation 9 of the AADML paper (Zeng et al., ICMR 2024) swaps the two cases and uses
    the squared distance as D. The swap is an error of the paper and is not reproduced; the distance is an option.

    Reference: Zeng et al., Anchor-aware deep metric learning for audio-visual retrieval, ICMR 2024, https://arxiv.org/abs/2404.13789

    Args:
        comparison: a anchors against c candidates.
        margin: distance from which a negative has no loss (1.0: AADML, section 5.2).
        legacy_eq9_distance: use the squared distance as D, as in Equation 9.

    Returns:
        Per anchor, the sum of the terms and the number of nonzero terms. An anchor without negatives still has the
        terms of its positives, and an anchor without positives still has the terms of its negatives. The loss of an
        anchor without positives and without negatives is 0.

    Raises:
        InputError: the comparison has relevance scores instead of vectors.

    Example:
        >>> comparison = Comparison.of_labels(audio, visual, labels, labels)
        >>> terms = contrastive(comparison, margin=1.0)
        >>> loss = terms.total.sum() / terms.active.sum().clamp_min(1)
        >>> loss.backward()
        >>> optimizer.step()
        >>> optimizer.zero_grad()
    """

    def cost(rows: Rows) -> Costs:
        pull = rows.either(rows.scores, (rows.scores - margin).clamp_max_(0))
        return Costs(0.5 * torch.linalg.vector_norm(pull, dim=1).square(), counted(pull), rows.pairs, pull)

    return summed(comparison, scores_of(comparison, "squared-euclidean" if legacy_eq9_distance else "euclidean"), cost)
