"""CrossCLR (Zolfaghari et al., ICCV 2021).

Reference: Zolfaghari et al., CrossCLR: cross-modal contrastive learning for multi-modal video representations, ICCV
2021, https://arxiv.org/abs/2109.14910
"""

from dataclasses import replace

from aadml.comparison import Comparison, Terms
from aadml.comparison.options import Temperature, Weight
from aadml.losses.kernels.likelihood import inverse, mean_over_positives
from aadml.losses.kernels.row_blocks import Costs, Near, Rows, summed
from aadml.losses.kernels.scores import scores_of


def cross_clr(comparison: Comparison, *, temperature: Temperature = 0.03, within_weight: Weight = 0.8) -> Terms:
    """Compute the cross-entropy of positives across modalities, against negatives of both modalities.

        total_i = -1/|P_i| sum over p in P_i of  log( exp(z_ip) / sum over j in P_i and N_i of exp(z_ij) )
        z_ij = s_ij / tau,  times `within_weight` where j is of the anchor's own modality

    s is the cosine. P_i contains only candidates of the other modality: the anchor's partner, or all candidates of
    the anchor's class. Candidates of the anchor's own modality and of the anchor's class or clip are neither
    positive nor negative. The anchor itself is left out entirely. The released code instead multiplies the anchor's
    score by 0, which leaves exp(0) in the sum. The paper also prunes and weights influential samples. This loss
    does not, because the code of this step was not released. Use candidates of both modalities (direction
    both-both).

    Args:
        comparison: a anchors against c candidates, with `within`.
        temperature: tau (0.03: the released code).
        within_weight: factor of the scores of candidates in the anchor's own modality (0.8: the released code).

    Returns:
        One term per anchor; no terms for anchors without a positive in the other modality.

    Raises:
        InputError: a comparison without `within` (mask of the candidates in the anchor's own modality), or a
            temperature that is not above 0.

    Example:
        >>> both, clips, row = torch.cat([audio, visual]), clips.repeat(2), torch.arange(2 * len(audio))
        >>> pairs = Comparison.of_ids(both, both, clips, clips, own=row.roll(len(audio)))
        >>> terms = cross_clr(replace(pairs, within=row[:, None] // len(audio) == row // len(audio)))
        >>> loss = terms.total.mean()
        >>> loss.backward()
        >>> optimizer.step()
    """

    def cost(rows: Rows) -> Costs:
        assert rows.within is not None
        weight = 1 + (within_weight - 1) * rows.within
        across = Near(rows.positives * (1 - rows.within))
        rivals = across.weights + rows.negatives
        logits = rows.scores * weight
        costs = mean_over_positives(logits, across, rivals, rows.shares, logits)
        return replace(costs, gradient=costs.gradient.mul_(weight))

    comparison.require("within", "cross-clr")
    return summed(comparison, scores_of(comparison, "cosine", inverse(temperature)), cost)
