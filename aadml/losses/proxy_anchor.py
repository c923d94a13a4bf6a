"""Proxy-Anchor loss (Kim et al., CVPR 2020).

Reference: Kim et al., Proxy anchor loss for deep metric learning, CVPR 2020, https://arxiv.org/abs/2003.13911
"""

from typing import Any

import torch
from torch import Tensor, nn

from aadml.comparison import Comparison, Terms
from aadml.comparison.autograd_functions import applied, once_differentiable
from aadml.comparison.options import Margin, Scale, Size
from aadml.feature_extraction.ground.options import removing
from aadml.losses.kernels.class_proxies import cosines_to_proxies, drawn_proxies
from aadml.losses.kernels.row_blocks import EXCLUDED
from aadml.losses.kernels.soft_sums import with_shares


@removing(length=0.01)
class ProxyAnchor(nn.Module):
    """Loss of learned class proxies that attract the items of their own class and repel all other items.

        total_i = 1/|P+| sum over p in P+ of  log(1 + sum over x of p's class of exp(-alpha (s_xp - margin)))
                + 1/|P|  sum over p in P  of  log(1 + sum over all other x  of exp( alpha (s_xp + margin)))

    s is the cosine, x the anchors of the comparison, P all proxies and P+ the proxies of the classes in the batch. The
    sums run over the whole batch, so every anchor has the same loss. Harder items weigh more. The proxies replace
    candidates and masks, and are shared by the comparisons of all directions. The proxies are trained with the
    encoders.

    Args:
        dimension: width d of the vectors (set from the data, not by the user).
        classes: number C of classes (set from the data).
        margin: margin of the cosines, delta of Kim et al. (0.1, as there).
        alpha: sharpness of the soft maximum over items (32: Kim et al.).

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
            InputError: the anchors have no classes or no vectors of the proxies' width, or a class has no proxy.
        """
        scores, labels = cosines_to_proxies(comparison, self.proxies, self.classes, "proxy-anchor", self.alpha)
        total: Tensor = applied(_SoftMaxima, scores, labels, self.alpha * self.margin)
        return Terms(total)


class _SoftMaxima(torch.autograd.Function):
    """Loss of the batch, once per item, with its gradient in the same pass."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, labels: Tensor, shift: float) -> Tensor:
        """Compute the loss from `scores` (C, a) and `labels` (a,).

        The scores are alpha times the cosines of proxies and items. The labels are the classes of the items.
        """
        classes, row = len(scores), labels[None]
        present = scores.new_zeros(classes).index_fill_(0, labels, 1).sum()
        attracted = torch.full_like(scores, -EXCLUDED).scatter_(0, row, -scores.gather(0, row))
        sides = torch.cat([attracted, scores.scatter(0, row, -EXCLUDED)])
        soft, slopes = with_shares(sides, None, shift, 1 / classes)
        factor = classes / present.clamp_min_(1)
        ctx.save_for_backward(scores, torch.addcmul(slopes[classes:], slopes[:classes], factor, value=-1))
        return torch.addcmul(soft[classes:].sum(), soft[:classes].sum(), factor).expand(len(labels))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, above: Tensor) -> tuple[Tensor | None, ...]:
        return above.sum() * ctx.saved_tensors[1], None, None
