"""CrossCLR (Zolfaghari et al., Cross-modal contrastive learning for multi-modal video representations, ICCV 2021)."""

import torch

from aadml.comparison import Comparison, Terms
from aadml.comparison.options import Temperature, Weight
from aadml.losses.kernels.likelihood import mean_over_positives, tempered


def cross_clr(comparison: Comparison, *, temperature: Temperature = 0.03, within_weight: Weight = 0.8) -> Terms:
    """Match across modalities among negatives of both modalities, those of the anchor's own weighing less.

        total_i = -1/|P_i| sum over p in P_i of  log( exp(z_ip) / sum over j in P_i and N_i of exp(z_ij) )
        z_ij = s_ij / tau,  times `within_weight` where j is of the anchor's own modality

    s is the cosine. P_i holds candidates of the other modality only (the own partner, or all of the class); what shares
    class or clip within the modality is neither positive nor negative. The anchor itself is left out entirely, whereas
    the released code multiplies its score by 0 and so leaves exp(0) in the sum. The pruning and weighting of
    influential samples that the paper adds was not released and is not part of this. Use it with candidates of both
    modalities (direction both-both).

    Args:
        comparison: a anchors against c candidates, with `within`.
        temperature: tau (0.03: the released code).
        within_weight: factor of scores within the modality (0.8: the released code).

    Returns:
        One term an anchor; nothing for anchors without a positive in another modality.

    Raises:
        InputError: the comparison does not say which candidates are of the anchor's own modality.

    Example:
        >>> both, clips, row = torch.cat([audio, visual]), clips.repeat(2), torch.arange(2 * len(audio))
        >>> pairs = Comparison.of_ids(both, both, clips, clips, own=row.roll(len(audio)))
        >>> terms = cross_clr(replace(pairs, within=row[:, None] // len(audio) == row // len(audio)))
        >>> loss = terms.total.mean()
        >>> loss.backward()
        >>> optimizer.step()
    """
    within = comparison.need("within", "cross-clr").expand_as(comparison.positives)
    logits = tempered(comparison.cosine, temperature)
    logits = torch.where(within, within_weight * logits, logits)
    positives = comparison.positives & ~within
    return mean_over_positives(logits, positives, positives | comparison.negatives, comparison.shares)
