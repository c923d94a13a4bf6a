"""Triplet margin loss (Schroff et al., FaceNet, CVPR 2015).

Reference: Schroff et al., FaceNet: a unified embedding for face recognition and clustering, CVPR 2015, https://doi.org/10.1109/CVPR.2015.7298682
"""

from aadml.comparison import Comparison, Terms
from aadml.comparison.options import Margin
from aadml.comparison.scores import Score
from aadml.losses.kernels.row_blocks import Costs, Rows, ones, summed
from aadml.losses.kernels.scores import dissimilarities
from aadml.losses.kernels.violations import violations


def triplet(comparison: Comparison, *, margin: Margin = 1.2, score: Score = "squared-euclidean") -> Terms:
    """Compute hinges of (positive, negative) pairs: a positive should be closer than a negative by `margin`.

        total_i = sum over p in P_i, n in N_i of  max(0, d_ip - d_in + margin),   d = squared Euclidean distance

    The sum over all triplets is exact, in O(a c log c) time and with memory for one block of rows. The sum of the
    hinges of a row is a sum over the sorted scores of the row. The gradient of the sum of hinges is a count (see
    `violations`). Equation 8 of the AADML paper (Zeng et al., ICMR 2024) is this loss. With a selection, this loss
    is a hard, semi-hard or complete-triplet loss.

    Reference: Zeng et al., Anchor-aware deep metric learning for audio-visual retrieval, ICMR 2024, https://arxiv.org/abs/2404.13789

    Args:
        comparison: a anchors against c candidates; pairs by label or by id.
        margin: required difference, in units of the score (1.2: AADML, section 5.2; 0.2 is usual for the cosine).
        score: "squared-euclidean", "euclidean", "cosine" or "dot"; d is minus the score for the last two.

    Returns:
        Per anchor, the sum of the hinges and the number of violating triplets; both are 0 where P_i or N_i is
        empty.

    Raises:
        InputError: `score` is unknown, or is a distance for a comparison with relevance scores instead of vectors.

    Example:
        >>> comparison = Comparison.of_labels(audio, visual, labels, labels)
        >>> terms = triplet(comparison, margin=1.2)
        >>> loss = terms.total.sum() / terms.active.sum().clamp_min(1)
        >>> loss.backward()
        >>> optimizer.step()
        >>> optimizer.zero_grad()
    """

    def cost(rows: Rows) -> Costs:
        counts = violations(rows.scores.detach(), rows.positives, rows.negatives, margin)
        active = counts.abs().sum(1) / 2
        possible = ones(rows.positives) * ones(rows.negatives)
        return Costs((counts * rows.scores).sum(1) + margin * active, active, possible, counts)

    return summed(comparison, dissimilarities(comparison, score), cost)
