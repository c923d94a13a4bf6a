"""ArcFace (Deng et al., CVPR 2019).

Reference: Deng et al., ArcFace: additive angular margin loss for deep face recognition, CVPR 2019, https://doi.org/10.1109/CVPR.2019.00482
"""

import math
from typing import Annotated, Any

import torch
from annotated_types import Interval
from torch import Tensor, nn

from aadml.comparison import Comparison, Terms
from aadml.comparison.autograd_functions import applied, once_differentiable
from aadml.comparison.options import Scale, Size
from aadml.comparison.pairwise import TINY
from aadml.feature_extraction.ground.options import removing
from aadml.losses.kernels.class_proxies import cosines_to_proxies, cross_entropies, drawn_proxies

Degrees = Annotated[float, Interval(ge=0, lt=180)]


@removing(length=1.0)
class ArcFace(nn.Module):
    """Softmax loss over class proxies, with a margin added to the angle between each anchor and its class's proxy.

        total_i = -log( exp(z_iy) / sum over classes c of exp(z_ic) ),   z_ic = scale cos(theta_ic)  for c != y,
        z_iy = scale cos(theta_iy + margin)  where theta_iy + margin <= 180 degrees, else scale (cos(theta_iy) - r),
        r = margin sin(margin)

    theta is the angle between anchor and proxy, and y the class of anchor i. In r, the margin is in radians. The
    cosine would rise again past 180 degrees, so z_iy is linear in cos(theta_iy) there, as in the authors' code.
    Each class has one learned proxy. The proxies replace candidates and masks, and are shared by the comparisons of
    all directions. The proxies are trained with the encoders.

    Args:
        dimension: width d of the vectors (set from the data, not by the user).
        classes: number C of classes (set from the data).
        margin: margin of the angle in degrees (28.6, which is 0.5 radians: Deng et al.).
        scale: factor of the cosines (64: Deng et al.).

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

    def __init__(self, *, dimension: Size, classes: Size, margin: Degrees = 28.6, scale: Scale = 64.0) -> None:
        super().__init__()
        self.classes, self.margin, self.scale = classes, math.radians(margin), scale
        # proxies of length 1 turn at the learning rate of the encoders, as in the paper
        self.proxies = drawn_proxies(classes, dimension, "arcface", length=1.0)

    def forward(self, comparison: Comparison) -> Terms:
        """Compute the loss of the anchors.

        Args:
            comparison: a anchors, with `anchor_class`.

        Returns:
            One term per anchor.

        Raises:
            InputError: the anchors have no classes or no vectors of the proxies' width, or a class has no proxy.
        """
        scores, labels = cosines_to_proxies(comparison, self.proxies, self.classes, "arcface", self.scale)
        return Terms(cross_entropies(applied(_Widened, scores, labels[None], self.margin, self.scale), labels))


class _Widened(torch.autograd.Function):
    """Scores (C, a) with the margin added to the angle between each anchor and the proxy of its class."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, labels: Tensor, margin: float, scale: float) -> Tensor:
        cosine = scores.gather(0, labels).div_(scale)
        target = cosine.clamp(-1, 1)
        sine = (1 + target).mul_(1 - target).add_(TINY).sqrt_()
        before = target >= -math.cos(margin)
        widened = torch.where(
            before, target * math.cos(margin) - sine * math.sin(margin), target - margin * math.sin(margin)
        )
        slope = torch.where(before, (target / sine).mul_(math.sin(margin)).add_(math.cos(margin)), 1)
        ctx.save_for_backward(scores, slope.mul_(cosine == target), labels)
        return scores.scatter(0, labels, widened.mul_(scale))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, above: Tensor) -> tuple[Tensor | None, ...]:
        _, slope, labels = ctx.saved_tensors
        return above.scatter(0, labels, slope.mul(above.gather(0, labels))), None, None, None
