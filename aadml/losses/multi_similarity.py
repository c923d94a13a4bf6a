"""Multi-similarity loss (Wang et al., CVPR 2019).

Reference: Wang et al., Multi-similarity loss with general pair weighting for deep metric learning, CVPR 2019, https://arxiv.org/abs/1904.06627
"""

from aadml.comparison import Comparison, Terms
from aadml.comparison.options import Cosine, Scale
from aadml.losses.kernels.likelihood import some
from aadml.losses.kernels.row_blocks import Costs, Rows, summed
from aadml.losses.kernels.scores import scores_of
from aadml.losses.kernels.soft_sums import with_shares


def multi_similarity(comparison: Comparison, *, alpha: Scale = 2.0, beta: Scale = 50.0, base: Cosine = 0.5) -> Terms:
    """Compute the loss that pulls positives above the cosine `base` and pushes negatives below `base`.

        total_i = 1/alpha log(1 + sum over p in P_i of exp(-alpha (s_ip - base)))
                + 1/beta  log(1 + sum over n in N_i of exp(beta (s_in - base)))

    s is the cosine. Harder pairs weigh more. The paper keeps only pairs that are hard relative to the anchor's
    other pairs. The selection "multi-similarity" has the same rule.

    Args:
        comparison: a anchors against c candidates.
        alpha: sharpness of the soft maximum over positives (2: Wang et al.).
        beta: sharpness of the soft maximum over negatives (50: Wang et al.; the authors' code also has 40).
        base: lambda, the target cosine: positives above, negatives below (0.5: the authors' code; 1: Wang et al.).

    Returns:
        One term per anchor that has positives, negatives or both. The loss of an anchor with neither is 0.

    Example:
        >>> comparison = Comparison.of_labels(audio, visual, labels, labels)
        >>> terms = multi_similarity(SELECTIONS["multi-similarity"](comparison, generator))
        >>> loss = terms.total.sum() / terms.possible.sum().clamp_min(1)
        >>> loss.backward()
        >>> optimizer.step()
        >>> optimizer.zero_grad()
    """

    def cost(rows: Rows) -> Costs:
        reach = rows.span / 2
        pulled, closer = with_shares(rows.scores, rows.positives, alpha * base, 1 / alpha, -alpha / beta, reach)
        pushed, apart = with_shares(rows.scores, rows.negatives, -beta * base, 1 / beta, 1.0, reach)
        total, possible = pulled + pushed, some(rows.positives).maximum(rows.has_negatives)
        return Costs(total, total > 0, possible, apart.sub_(closer, alpha=alpha / beta))

    return summed(comparison, scores_of(comparison, "cosine", beta), cost)
