"""Proxy-Anchor loss (Kim et al., Proxy anchor loss for deep metric learning, CVPR 2020)."""

from dataclasses import replace

import torch
from torch import nn

from aadml.comparison import Comparison, Terms
from aadml.comparison.masks import MaskCodes
from aadml.comparison.options import Margin, Scale, Size
from aadml.feature_extraction.ground.options import removing
from aadml.losses.kernels.class_proxies import directions, drawn_proxies, one_term_each
from aadml.losses.kernels.likelihood import some
from aadml.losses.kernels.row_blocks import Costs, Rows, summed
from aadml.losses.kernels.scores import Scores, unit
from aadml.losses.kernels.soft_sums import with_shares


@removing(length=0.01)
class ProxyAnchor(nn.Module):
    """Class proxies that attract the items of their class and repel all others, the hardest items most.

        total_i = 1/|P+| sum over p in P+ of  log(1 + sum over x of p's class of exp(-alpha (s_xp - margin)))
                + 1/|P|  sum over p in P  of  log(1 + sum over all other x  of exp( alpha (s_xp + margin)))

    s is the cosine, x the anchors of the comparison, P all proxies and P+ the proxies of the classes in the batch. The
    sums run over the whole batch, so every anchor has the same loss. The proxies replace candidates and masks, and are
    shared by all directions of the comparison. The proxies are trained with the encoders.

    Args:
        dimension: width d of the vectors (set from the data, not by the user).
        classes: number C of classes (set from the data).
        margin: delta (0.1: the paper).
        alpha: sharpness of the soft maximum over items (32: the paper).

    Raises:
        InputError: the data have no classes.

    Example:
        >>> vectors = torch.cat([audio_head(audio_body(audio)), visual_head(visual_body(visual))])
        >>> comparison = Comparison.of_labels(vectors, vectors, labels.repeat(2), labels.repeat(2))
        >>> loss(comparison).total.mean().backward()
        >>> encoder_optimizer.step()
        >>> proxy_optimizer.step()
    """

    one_for_all_directions = True

    def __init__(self, *, dimension: Size, classes: Size, margin: Margin = 0.1, alpha: Scale = 32.0) -> None:
        super().__init__()
        self.classes, self.margin, self.alpha = classes, margin, alpha
        self.proxies = drawn_proxies(classes, dimension, "proxy-anchor")

    def forward(self, comparison: Comparison) -> Terms:
        """Compute the loss of the anchors.

        Args:
            comparison: a anchors, with `anchor_class`.

        Returns:
            The same term for every anchor.

        Raises:
            InputError: there are no classes, or a class has no proxy.
        """
        anchors, labels = directions(comparison, self.proxies.shape[1], self.classes, "proxy-anchor")
        present = anchors.new_zeros(self.classes).index_fill_(0, labels, 1).sum().clamp_min(1)
        shift = self.alpha * self.margin

        def cost(rows: Rows) -> Costs:
            pulled, closer = with_shares(-rows.scores, rows.negatives, shift, 1)
            pushed, apart = with_shares(rows.scores, rows.positives, shift, 1 / self.classes)
            here = some(rows.positives) / present
            total = pulled * here + pushed
            return Costs(total, total, total, apart.addcmul_(closer, here[:, None], value=-1))

        codes = MaskCodes((torch.arange(self.classes, device=labels.device), labels))
        batch = replace(comparison, positives=codes.positives, negatives=codes.negatives, within=None)
        proxies = unit(self.proxies.to(anchors.dtype))
        total = summed(batch, Scores(proxies, anchors, scale=self.alpha), cost).total.sum()
        return one_term_each(total.expand(len(anchors)))
