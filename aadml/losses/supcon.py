"""Supervised contrastive loss (Khosla et al., NeurIPS 2020), the form with the sum outside the logarithm.

Reference: Khosla et al., Supervised contrastive learning, NeurIPS 2020, https://arxiv.org/abs/2004.11362
"""

from aadml.comparison import Comparison, Terms
from aadml.comparison.options import Temperature
from aadml.losses.kernels.likelihood import inverse, mean_over_positives
from aadml.losses.kernels.partners import of_partners
from aadml.losses.kernels.row_blocks import Costs, Rows, summed
from aadml.losses.kernels.scores import scores_of


def supcon(comparison: Comparison, *, temperature: Temperature = 0.07) -> Terms:
    """Compute the negative mean log-probability of an anchor's positives among its positives and negatives.

        total_i = -1/|P_i| sum over p in P_i of  log( exp(s_ip / tau) / sum over j in P_i and N_i of exp(s_ij / tau) )

    s is the cosine. The paper compares a set of two views with itself: direction both-both, with the anchor itself in
    neither mask. Across modalities (audio-visual) the formula is the same. With one positive per anchor, this loss is
    NT-Xent.

    Args:
        comparison: a anchors against c candidates.
        temperature: tau (0.07: the authors' code, with a factor tau / base temperature of 1; 0.1: Khosla et al.
            on ImageNet, and pytorch-metric-learning).

    Returns:
        One term per anchor; no terms for anchors without positives. Without negatives, several positives still compete
        with each other: the minimum is log |P_i|.

    Raises:
        InputError: the temperature is not above 0.

    Example:
        >>> comparison = Comparison.of_labels(audio, visual, labels, labels)
        >>> terms = supcon(comparison, temperature=0.07)
        >>> loss = terms.total.sum() / terms.possible.sum().clamp_min(1)
        >>> loss.backward()
        >>> optimizer.step()
        >>> optimizer.zero_grad()
    """

    def cost(rows: Rows) -> Costs:
        return mean_over_positives(rows.scores, rows.near, rows.rivals, rows.shares, rows.room, rows.span)

    terms = of_partners(comparison, temperature)
    return terms or summed(comparison, scores_of(comparison, "cosine", inverse(temperature)), cost)
