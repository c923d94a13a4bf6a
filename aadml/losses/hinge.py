"""Thresholded hinge embedding loss (Bailer, Varanasi and Stricker, CVPR 2017).

Reference: Bailer et al., CNN-based patch matching for optical flow with thresholded hinge embedding loss, CVPR 2017, https://arxiv.org/abs/1607.08064
"""

from aadml.comparison import Comparison, Terms
from aadml.comparison.options import Margin
from aadml.losses.kernels.row_blocks import Costs, Rows, counted, summed
from aadml.losses.kernels.scores import scores_of


def hinge(comparison: Comparison, *, threshold: Margin = 0.3, margin: Margin = 1.0) -> Terms:
    """Compute the loss that pulls positives within distance t and pushes negatives beyond distance t + m.

        total_i = sum over p in P_i of  max(0, D_ip - t)  +  sum over n in N_i of  max(0, m - (D_in - t))

    D is the Euclidean distance. With t = 0, this loss is `torch.nn.HingeEmbeddingLoss`.

    Args:
        comparison: a anchors against c candidates.
        threshold: distance t (0.3: Bailer et al., quoted from memory).
        margin: distance m (1.0: AADML, section 5.2).

    Returns:
        Per anchor, the sum of the terms and the number of nonzero terms. An anchor without negatives still has the
        terms of its positives, and an anchor without positives still has the terms of its negatives. The loss of an
        anchor without positives and without negatives is 0.

    Raises:
        InputError: the comparison has relevance scores instead of vectors.

    Example:
        >>> comparison = Comparison.of_labels(audio, visual, labels, labels)
        >>> terms = hinge(comparison, threshold=0.3, margin=1.0)
        >>> loss = terms.total.sum() / terms.active.sum().clamp_min(1)
        >>> loss.backward()
        >>> optimizer.step()
        >>> optimizer.zero_grad()
    """

    def cost(rows: Rows) -> Costs:
        far = rows.scores - (threshold + margin)
        pull = rows.either((rows.scores - threshold).relu_(), far.clamp_max_(0))
        total = pull.abs().sum(1)
        return Costs(total, counted(pull), rows.pairs, pull.sign_())

    return summed(comparison, scores_of(comparison, "euclidean"), cost)
