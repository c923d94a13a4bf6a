"""SoftTriple loss (Qian et al., ICCV 2019).

Reference: Qian et al., SoftTriple loss: deep metric learning without triplet sampling, ICCV 2019, https://arxiv.org/abs/1909.05235
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from aadml.comparison import Comparison, Terms
from aadml.comparison.autograd_functions import Gradients, once_differentiable
from aadml.comparison.options import Margin, Scale, Size, Weight, Width
from aadml.comparison.pairwise import TINY
from aadml.feature_extraction.ground.options import removing
from aadml.losses.kernels.class_proxies import cosines_to_proxies, cross_entropies, drawn_proxies
from aadml.losses.kernels.scores import unit

GAMMA = 0.1
"""gamma, the temperature of the softmax over the centers of a class (the paper)."""


@removing(gamma=GAMMA, length=0.01)
class SoftTriple(nn.Module):
    """Softmax loss over classes, by similarity to several learned centers per class; nearer centers weigh more.

        S_ic = sum over k of q_k s_ick,   q = softmax over k of s_ick / gamma
        total_i = -log( exp(scale (S_iy - margin)) / (exp(scale (S_iy - margin)) + sum over c != y of exp(scale S_ic)) )
        penalty = merge / (C K (K - 1)) sum over c, k < l of |w_ck - w_cl|

    s_ick is the cosine of anchor i and center k of class c, y the class of i, w a center of length 1. gamma is 0.1 (the
    paper). The penalty merges centers that a class does not need. The centers replace candidates and masks, and are
    shared by the comparisons of all directions. The centers are trained with the encoders.

    Args:
        dimension: width d of the vectors (set from the data, not by the user).
        classes: number C of classes (set from the data).
        centers: K, number of centers per class (10: Qian et al.).
        scale: factor of the similarities, lambda of Qian et al. (20, as there).
        margin: margin of the similarity to the anchor's class, delta of Qian et al. (0.01, as there).
        merge: weight of the penalty, tau of Qian et al. (0.2, as there).

    Raises:
        InputError: the data have no classes.

    Example:
        >>> vectors = torch.cat([audio_head(audio_body(audio)), visual_head(visual_body(visual))])
        >>> terms = loss(Comparison.of_labels(vectors, vectors, labels.repeat(2), labels.repeat(2)))
        >>> (terms.total.mean() + terms.penalty).backward()
        >>> encoder_optimizer.step()
        >>> proxy_optimizer.step()
    """

    one_for_all_directions = True

    def __init__(
        self,
        *,
        dimension: Size,
        classes: Size,
        centers: Width = 10,
        scale: Scale = 20.0,
        margin: Margin = 0.01,
        merge: Weight = 0.2,
    ) -> None:
        super().__init__()
        self.classes, self.centers, self.merge = classes, centers, merge
        self.scale, self.margin = scale, margin
        self.proxies = drawn_proxies(classes * centers, dimension, "soft-triple")

    def forward(self, comparison: Comparison) -> Terms:
        """Compute the loss of the anchors.

        Args:
            comparison: a anchors, with `anchor_class`.

        Returns:
            One term per anchor, and the penalty, which is None if `merge` is 0.

        Raises:
            InputError: the anchors have no classes or no vectors of the centers' width, or a class has no center.
        """
        cosine, labels = cosines_to_proxies(comparison, self.proxies, self.classes, "soft-triple")
        cosine = cosine.view(self.classes, self.centers, -1).transpose(0, 1)  # (K, C, a)
        chosen: Callable[..., Tensor] = _Chosen.apply
        logits = self.scale * chosen(cosine)
        logits = logits.scatter_add(0, labels[None], torch.full_like(logits[:1], -self.scale * self.margin))
        units = unit(self.proxies.to(cosine.dtype))
        cost = cross_entropies(logits, labels)
        return Terms(cost, penalty=self._penalty(units) if self.merge else None)

    def _penalty(self, units: Tensor) -> Tensor:
        """Return the penalty: the weighted sum of distances between the centers of each class."""
        count = self.centers
        units = units.view(self.classes, count, -1)
        squared = (units[:, :, None] - units[:, None]).square().sum(3)
        first, second = torch.triu_indices(count, count, 1, device=units.device)
        lengths = (squared[:, first, second] + TINY).sqrt()
        return self.merge * lengths.sum() / (self.classes * count * max(count - 1, 1))


class _Chosen(torch.autograd.Function):
    """Mean of cosines, weighted by their softmax.

    S = sum over k of q_k s_k, q = softmax over k of s_k / GAMMA; dS / ds_k = q_k (1 + (s_k - S) / GAMMA)
    """

    @staticmethod
    def forward(ctx: Any, cosine: Tensor) -> Tensor:
        """Sum the weighted cosines over the K centers of each class: (K, C, a) -> (C, a)."""
        weight = (cosine - cosine.amax(0)).mul_(1 / GAMMA).exp_()
        weight /= weight.sum(0)
        similarity = (weight * cosine).sum(0)
        ctx.save_for_backward(cosine, weight, similarity)
        return similarity

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, above: Tensor) -> Gradients:
        """Return the gradient with respect to the cosines (K, C, a)."""
        cosine, weight, similarity = ctx.saved_tensors
        return ((cosine - similarity).mul_(1 / GAMMA).add_(1).mul_(weight).mul_(above),)
