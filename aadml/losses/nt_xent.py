"""NT-Xent, the normalized temperature-scaled cross-entropy (Chen et al., SimCLR, ICML 2020).

Reference: Chen et al., A simple framework for contrastive learning of visual representations, ICML 2020, https://arxiv.org/abs/2002.05709
"""

from aadml.comparison import Comparison, Terms
from aadml.comparison.options import Temperature
from aadml.losses.kernels.likelihood import inverse, of_each_positive
from aadml.losses.kernels.partners import of_partners
from aadml.losses.kernels.row_blocks import Costs, Rows, summed
from aadml.losses.kernels.scores import scores_of


def nt_xent(comparison: Comparison, *, temperature: Temperature = 0.07, mask_same_id: bool = True) -> Terms:
    """Compute the cross-entropy of cosines, each positive against all negatives of its anchor.

        total_i = sum over p in P_i of  -log( e_ip / (e_ip + sum over n in N_i of e_in) ),   e_ij = exp(s_ij / tau)

    s is the cosine. For paired ids, this loss is the audio-text loss of Mei et al. (Interspeech 2022),
    cross-entropy with the diagonal as target. Other captions of the same clip are
    neither positives nor negatives, and stay out of the sum. In the authors' code, these captions are negatives,
    because the mask has no effect.

    Reference: Mei et al., On metric learning for audio-text cross-modal retrieval, Interspeech 2022, https://arxiv.org/abs/2203.15537

    Args:
        comparison: a anchors against c candidates.
        temperature: tau (0.07: Mei et al.).
        mask_same_id: exclude candidates that are neither positives nor negatives from the sum. If False, such
            candidates count as negatives, as in the code of Mei et al., except in the anchor's own modality (which
            contains the anchor itself).

    Returns:
        One term per positive; no terms for anchors without positives or without negatives in the sum.

    Raises:
        InputError: the temperature is not above 0.

    Example:
        >>> pairs = Comparison.of_ids(audio, text, clips, clips)
        >>> terms = nt_xent(pairs, temperature=0.07)
        >>> loss = terms.total.sum() / terms.possible.sum().clamp_min(1)
        >>> loss.backward()
        >>> optimizer.step()
        >>> optimizer.zero_grad()
    """

    def cost(rows: Rows) -> Costs:
        negatives = None if rows.whole else rows.negatives
        if negatives is not None and not mask_same_id:
            others = 1 - rows.positives
            negatives = negatives.maximum(others if rows.within is None else others * (1 - rows.within))
        return of_each_positive(rows.scores, rows.near, negatives, rows.shares, rows.room)

    terms = of_partners(comparison, temperature)
    return terms or summed(comparison, scores_of(comparison, "cosine", inverse(temperature)), cost)
