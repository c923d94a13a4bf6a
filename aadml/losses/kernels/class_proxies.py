"""Parts shared by losses with learned class proxies: initial proxies, and cosines of anchors and proxies."""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from aadml.comparison import Comparison
from aadml.comparison.autograd_functions import applied, once_differentiable, output
from aadml.comparison.host_reads import code_range
from aadml.comparison.pairwise import TINY, full_precision, lengths
from aadml.feature_extraction.ground.errors import InputError
from aadml.losses.kernels.scores import room_of

SHORT = 0.01
"""Initial length of proxies; it acts like a learning rate a hundred times that of the encoders (Kim et al., 2020).

Reference: Kim et al., Proxy anchor loss for deep metric learning, CVPR 2020, https://arxiv.org/abs/2003.13911
"""


def drawn_proxies(count: int, dimension: int, loss: str, length: float = SHORT) -> nn.Parameter:
    """Draw proxies (count, dimension) with random directions and with lengths near `length`.

    Losses use only the directions of the proxies. Adam moves every entry by about the learning rate, independently
    of the length of the proxies. Proxies of length 0.01 therefore turn as fast as proxies of length 1 at a hundred
    times the learning rate.

    Raises:
        InputError: there are no classes.
    """
    if not count:
        raise InputError(
            f"{loss} learns proxies of the classes, but the method or the data have no classes; choose another "
            "loss, or pass labels to a method with classes"
        )
    return nn.Parameter(torch.randn(count, dimension) * length / math.sqrt(dimension))


def cosines_to_proxies(
    comparison: Comparison, proxies: Tensor, classes: int, loss: str, scale: float = 1.0
) -> tuple[Tensor, Tensor]:
    """Return the cosines of proxies and anchors, times a factor, and the class indices of the anchors.

    Args:
        comparison: a anchors, with `anchor_class`; candidates are not used.
        proxies: (p, d).
        classes: C, number of classes.
        loss: name of the loss, for messages.
        scale: factor of the cosines, not 0.

    Returns:
        Cosines (p, a) times `scale`, and classes (a,). The cosines of an anchor or proxy of length 0 are 0 and have no
        gradient.

    Raises:
        InputError: the anchors have no classes or no vectors of width d, or a class has no proxy.
    """
    labels = comparison.need("anchor_class", loss)
    check_classes(labels, classes, loss)
    anchors, width = comparison.vectors(loss)[0], proxies.shape[1]
    if anchors.shape[1] != width:
        raise InputError(
            f"{loss} was built for vectors of width {width}, but vectors of width {anchors.shape[1]} were passed; pass "
            f"vectors of width {width}"
        )
    cosine: Tensor = applied(_Cosines, proxies.to(anchors.dtype), anchors, scale)
    return cosine, labels


def check_classes(labels: Tensor, classes: int, loss: str) -> None:
    """Raise InputError unless all classes in `labels` (n,) are in 0..classes-1; compiled code raises RuntimeError."""
    if torch.compiler.is_compiling():  # compiled code cannot read the labels
        torch._assert_async((labels == labels.clamp(0, classes - 1)).all(), f"{loss}: a class is out of range")
        return
    least, most = code_range(labels)
    if least < 0 or most >= classes:
        raise InputError(
            f"{loss} was built for the classes 0 to {classes - 1}, but the clips have classes {least} to {most}; pass "
            f"class labels from 0 to {classes - 1} (pairs by id have none)"
        )


class _Cosines(torch.autograd.Function):
    """Cosines (p, a) of proxies and anchors, times a factor.

    The products are divided by the lengths of the anchors, so that no pass writes normalized anchors.

        s_pa = factor w_p . x_a / |x_a|
        dx_a = sum over p of g_pa factor w_p / |x_a|  -  x_a sum over p of g_pa s_pa / |x_a|^2

    w_p is proxy p divided by its length, and x_a is an anchor. dx_a is the gradient of x_a for incoming gradients
    g_pa. The gradients of the proxies have the same form.
    """

    @staticmethod
    def forward(ctx: Any, proxies: Tensor, anchors: Tensor, scale: float) -> Tensor:
        length = torch.threshold(torch.linalg.vector_norm(anchors, dim=1), TINY, torch.inf)
        factor, shrink, ctx.scale = scale / lengths(proxies), length.reciprocal_(), scale
        scaled = proxies * factor
        with full_precision(anchors):
            cosine = output(torch.mm(scaled, anchors.T).mul_(shrink))
        ctx.save_for_backward(proxies, anchors, scaled, factor, shrink, cosine)
        return cosine

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, above: Tensor) -> tuple[Tensor | None, ...]:
        _, anchors, scaled, factor, shrink, cosine = ctx.saved_tensors
        above, by_proxies, by_anchors = above * shrink, None, None
        with full_precision(above):
            if ctx.needs_input_grad[0]:
                straight = torch.mm(above, anchors)
                along = (straight * scaled).sum(1, keepdim=True)
                by_proxies = straight.addcmul_(scaled, along, value=-(ctx.scale**-2)).mul_(factor)
            if ctx.needs_input_grad[1]:
                along = (above * cosine).sum(0).mul_(shrink)[:, None]
                compiling = torch.compiler.is_compiling()
                straight = above.T @ scaled if compiling else room_of(anchors).addmm_(above.T, scaled, beta=0)
                by_anchors = straight.addcmul_(anchors, along, value=-1)
        return by_proxies, by_anchors, None


def cross_entropies(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the cross-entropies (a,) of the anchors' classes `labels` (a,), from logits (C, a).

    With few classes, a softmax over columns takes a sixth of the time of a softmax over rows.
    """
    return F.cross_entropy(logits[None], labels[None], reduction="none")[0]
