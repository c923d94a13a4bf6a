"""Posterior NCA: neighbourhood components analysis (Goldberger et al., NIPS 2004) on class posteriors."""

import torch

from aadml.comparison import Comparison, Terms, pairwise
from aadml.comparison.options import Temperature
from aadml.losses.kernels.likelihood import tempered


def posterior_nca(comparison: Comparison, *, temperature: Temperature = 1.0) -> Terms:
    """Raise the share of an anchor's posterior inner product that falls on its positives.

        p = softmax(x / T),   total_i = -log( sum over j in P_i of p_i.p_j  /  sum over j in P_i and N_i of p_i.p_j )

    p_i.p_j is the probability that two items, independent given their classes, share one: the score by which posterior
    read-outs rank. The vectors are taken as logits, one a class. Add it to cross-entropy: alone it fails, for nothing
    says which output is which class.

    Args:
        comparison: a anchors against c candidates, both in label space.
        temperature: T (1.0: as the posterior is read out by default).

    Returns:
        One term an anchor; nothing for anchors without positives, nothing without negatives.

    Raises:
        InputError: a comparison of relevance scores.

    Example:
        >>> comparison = Comparison.of_labels(audio, visual, labels, labels)
        >>> terms = posterior_nca(comparison)
        >>> loss = torch.nn.functional.cross_entropy(audio, labels) + terms.total.mean()
        >>> loss.backward()
        >>> optimizer.step()
        >>> optimizer.zero_grad()
    """
    anchors, candidates = comparison.vectors("posterior-nca")
    posteriors = [torch.softmax(tempered(vectors, temperature), 1) for vectors in (anchors, candidates)]
    likelihood = pairwise.dot(*posteriors)
    possible = comparison.positives.any(1) & comparison.negatives.any(1)
    tiny = torch.finfo(likelihood.dtype).tiny
    alike = pairwise.masked_sum(likelihood, comparison.positives) + tiny
    other = pairwise.masked_sum(likelihood, comparison.negatives)
    total = ((alike + other).log() - alike.log()).masked_fill(~possible, 0)
    return Terms(total, ((total > 0) & possible).long(), possible.long())
