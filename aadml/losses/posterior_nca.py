"""Posterior NCA: neighborhood components analysis (Goldberger et al., NIPS 2004) on class posteriors."""

from dataclasses import replace

import torch
from torch import Tensor

from aadml.comparison import Comparison, Terms
from aadml.comparison.options import Temperature
from aadml.losses.kernels.likelihood import some, tempered
from aadml.losses.kernels.row_blocks import Costs, Rows, summed
from aadml.losses.kernels.scores import Scores


def posterior_nca(comparison: Comparison, *, temperature: Temperature = 1.0) -> Terms:
    """Compute the negative log of the positives' share in an anchor's summed inner products of class posteriors.

        p = softmax(x / T),   total_i = -log( sum over j in P_i of p_i.p_j  /  sum over j in P_i and N_i of p_i.p_j )

    p_i.p_j is the probability that two items with independent classes have the same class; posterior read-outs rank by
    this score. The vectors are used as logits, one per class. The score is linear in p_j. Where all pairs count, the
    candidates of each of g classes are therefore summed first. The result is exact, and the time is O(a g). Add the
    loss to a cross-entropy. Training with only this loss fails, because it does not assign outputs to classes.

    Args:
        comparison: a anchors against c candidates, both in label space.
        temperature: T (1.0: the default of the posterior read-out).

    Returns:
        One term per anchor; no terms for anchors without positives or without negatives.

    Raises:
        InputError: the comparison has relevance scores instead of vectors.

    Example:
        >>> comparison = Comparison.of_labels(audio, visual, labels, labels)
        >>> terms = posterior_nca(comparison)
        >>> loss = torch.nn.functional.cross_entropy(audio, labels) + terms.total.mean()
        >>> loss.backward()
        >>> optimizer.step()
        >>> optimizer.zero_grad()
    """
    anchors, candidates = comparison.vectors("posterior-nca")
    left, right = (_posteriors(tempered(vectors, temperature)) for vectors in (anchors, candidates))
    codes = comparison.codes_of_all_pairs()
    if codes is not None and not torch.compiler.is_compiling():
        codes, right = codes.by_group(right)
        comparison = replace(comparison, positives=codes.positives, negatives=codes.negatives, within=None)
    return summed(comparison, Scores(left, right), _cost)


def _posteriors(logits: Tensor) -> Tensor:
    """Return the softmax of rows (n, C); few columns take a sixth of the time if they are laid out in memory first."""
    return torch.softmax(logits, 1) if logits.shape[1] >= 16 else torch.softmax(logits.T.contiguous(), 0).T


def _cost(rows: Rows) -> Costs:
    least = torch.finfo(rows.scores.dtype).tiny
    floor = least / torch.finfo(rows.scores.dtype).eps  # below it, gradients of many candidates add up to infinity
    possible, rivals = some(rows.positives) * rows.has_negatives, rows.rivals
    alike = (rows.scores * rows.positives).sum(1) + least
    every = (rows.scores if rivals is None else rows.scores * rivals).sum(1) + least
    total = (every.log() - alike.log()) * possible
    by_every, by_alike = ((possible / mass.clamp_min(floor))[:, None] for mass in (every, alike))
    outside = by_every if rivals is None else rivals * by_every
    return Costs(total, total > 0, possible, torch.sub(outside, rows.positives * by_alike, out=rows.room))
