"""Multi-class N-pair loss (Sohn, NIPS 2016).

Reference: Sohn, Improved deep metric learning with multi-class N-pair loss objective, NIPS 2016, https://papers.nips.cc/paper/2016/hash/6b180037abbebea991d8b1232f8a8ca9-Abstract.html
"""

import torch
from torch import Tensor

from aadml.comparison import Comparison, Terms
from aadml.comparison.options import Weight
from aadml.losses.kernels.likelihood import mean_over_positives, of_each_positive
from aadml.losses.kernels.row_blocks import Costs, Rows, summed
from aadml.losses.kernels.scores import scores_of


def n_pair(comparison: Comparison, *, l2: Weight = 3e-3, multi_positive: bool = False) -> Terms:
    """Compute the cross-entropy of inner products, each positive against all negatives of its anchor.

        total_i = sum over p in P_i of  log(1 + sum over n in N_i of exp(x_i . r_n - x_i . r_p))
        penalty = l2 / 4 (mean |x|^2 + mean |r|^2)

    Anchors x and candidates r are not normalized; the penalty keeps them short. The means are over the anchors with
    positives, and over the candidates that are a positive of any anchor. With the selection of one pair per class
    the result is Sohn's loss: cross-entropy of X R^T with the diagonal as target. In the multi-positive form, each
    anchor has a cross-entropy with equal weight on all of its positives,

        multi_positive:  total_i = -1/|P_i| sum over p in P_i of  log( e_ip / sum over j in P_i and N_i of e_ij ),
                         e_ij = exp(x_i . r_j)

    Args:
        comparison: a anchors against c candidates.
        l2: weight of the penalty (0.003: the HDML authors' code); it must be 0 for relevance scores.
        multi_positive: use the second form, where positives share the softmax.

    Returns:
        One term per positive (with `multi_positive`, one per anchor), and the penalty, which is None if `l2` is 0.
        The loss of an anchor without positives is 0. The loss of an anchor without negatives is 0 too, except in
        the multi-positive form, where its positives still compete with each other.

    Raises:
        InputError: `l2` is above 0, but the comparison has relevance scores instead of vectors.

    Example:
        >>> comparison = one_pair_a_class(Comparison.of_labels(audio, visual, labels, labels), generator)
        >>> terms = n_pair(comparison, l2=0.003)
        >>> loss = terms.total.sum() / terms.possible.sum().clamp_min(1) + terms.penalty
        >>> loss.backward()
        >>> optimizer.step()
        >>> optimizer.zero_grad()
    """

    def cost(rows: Rows) -> Costs:
        if multi_positive:
            return mean_over_positives(rows.scores, rows.near, rows.rivals, rows.shares, rows.room)
        negatives = None if rows.whole else rows.negatives
        return of_each_positive(rows.scores, rows.near, negatives, rows.shares, rows.room)

    terms = summed(comparison, scores_of(comparison, "dot"), cost)
    return Terms(terms.total, terms.active, terms.possible, _penalty(comparison, l2) if l2 else None)


def _penalty(comparison: Comparison, l2: float) -> Tensor:
    anchors, candidates = comparison.vectors("the l2 option of n-pair", "set loss.l2 to 0")
    if comparison.codes_of_both() is not None:  # every clip is a positive of a clip
        lengths = [vectors.square().sum(1).sum() / max(len(vectors), 1) for vectors in (anchors, candidates)]
        return 0.25 * l2 * (lengths[0] + lengths[1])
    codes = comparison.codes_of_all_pairs()
    if codes is None:
        used = comparison.positives.any(1), comparison.positives.any(0)
    else:
        used = torch.isin(*codes.groups), torch.isin(*reversed(codes.groups))
    lengths = [
        (vectors.square().sum(1) * some).sum() / some.sum().clamp_min(1)
        for vectors, some in zip((anchors, candidates), used, strict=True)
    ]
    return 0.25 * l2 * (lengths[0] + lengths[1])
