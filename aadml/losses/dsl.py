"""Dual softmax loss (Cheng et al., Improving video-text retrieval by multi-stream corpus alignment, CAMoE, 2021)."""

import torch
from torch import Tensor

from aadml.comparison import Comparison, Terms
from aadml.comparison.options import Temperature
from aadml.losses.kernels.likelihood import mean_over_positives, tempered


def dsl(comparison: Comparison, *, temperature: Temperature = 0.05, prior_temperature: Temperature = 1000.0) -> Terms:
    """Weigh every score by how much the candidate prefers this anchor, then ask positives to win the anchor's softmax.

        S_ij = cos(x_i, r_j) / tau
        S'_ij = S_ij a softmax over i of (S_ij / prior_temperature)
        total_i = -1/|P_i| sum over p in P_i of  log softmax over j of (S'_ij) at p

    The paper has pairs; with labels it is the mean over the positives. Both softmaxes leave out entries in neither
    mask, and a is the number of anchors the candidate is compared with. The prior joins the anchors of a batch: alone
    among the losses, an anchor's cost here depends on the other anchors. Symmetrise by directions both ways.

    Args:
        comparison: a anchors against c candidates.
        temperature: tau (0.05: a logit scale of 20; CAMoE learns the scale).
        prior_temperature: of the softmax over anchors (1000: the released code, which leaves the prior almost flat).

    Returns:
        One term an anchor; nothing for anchors without positives. Without negatives several positives still compete
        with each other.

    Example:
        >>> pairs = Comparison.of_ids(audio, text, clips, clips)
        >>> terms = dsl(pairs, temperature=0.05)
        >>> loss = terms.total.sum() / terms.possible.sum().clamp_min(1)
        >>> loss.backward()
        >>> optimizer.step()
        >>> optimizer.zero_grad()
    """
    rivals = comparison.positives | comparison.negatives
    scores = tempered(comparison.cosine, temperature)
    prior = _prior(tempered(scores, prior_temperature), rivals)
    return mean_over_positives(scores * prior, comparison.positives, rivals, comparison.shares)


def _prior(scores: Tensor, rivals: Tensor) -> Tensor:
    """Softmax over anchors times their number, so that a flat prior is 1 everywhere; 1 outside `rivals` too."""
    somebody = rivals.any(0)
    kept = scores.masked_fill(~rivals & somebody, -torch.inf)
    return torch.where(rivals, torch.softmax(kept, 0) * rivals.sum(0), 1)
