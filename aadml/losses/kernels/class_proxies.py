"""Parts shared by losses with learned class proxies: initial proxies, and cosines of anchors and proxies."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from aadml.comparison import Comparison, Terms
from aadml.feature_extraction.ground.errors import InputError
from aadml.losses.kernels.scores import products, unit

SHORT = 0.01
"""Initial length of proxies; it acts like a learning rate a hundred times that of the encoders (Kim et al., 2020)."""


def drawn_proxies(count: int, dimension: int, loss: str, length: float = SHORT) -> nn.Parameter:
    """Draw proxies of random direction and of about the length `length` -> (count, dimension).

    Only their directions are used. Adam moves every entry by about the learning rate, independently of the length of
    the proxies. Proxies of length 0.01 therefore turn as fast as proxies of length 1 at a hundred times the rate.

    Raises:
        InputError: there are no classes.
    """
    if not count:
        raise InputError(
            f"{loss} learns one proxy per class, but the data have no classes; choose another loss, or pass labels"
        )
    return nn.Parameter(torch.randn(count, dimension) * length / math.sqrt(dimension))


def directions(comparison: Comparison, width: int, classes: int, loss: str) -> tuple[Tensor, Tensor]:
    """Return unit-norm anchors and their class indices.

    Args:
        comparison: a anchors, with `anchor_class`; candidates are not used.
        width: d of the proxies.
        classes: C, number of classes.
        loss: name of the loss, for messages.

    Returns:
        Directions (a, d), a zero vector for a zero anchor, and classes (a,).

    Raises:
        InputError: the anchors have no classes or no vectors of width d, or a class has no proxy.
    """
    labels = comparison.need("anchor_class", loss)
    if torch.compiler.is_compiling():  # compiled code cannot read the labels
        torch._assert_async((labels == labels.clamp(0, classes - 1)).all(), f"{loss}: a class has no proxy")
    elif not torch.equal(labels, labels.clamp(0, classes - 1)):
        raise InputError(
            f"{loss} has proxies of the classes 0 to {classes - 1}, but the anchors have classes {int(labels.min())} to"
            f" {int(labels.max())}; pass clips with class labels (clips that are paired by id have none)"
        )
    anchors = comparison.vectors(loss)[0]
    if anchors.shape[1] != width:
        raise InputError(
            f"{loss} was built for vectors of width {width}, but vectors of width {anchors.shape[1]} were passed; pass "
            f"vectors of width {width}"
        )
    return unit(anchors, turn_zero=False), labels


def cosines_to_proxies(comparison: Comparison, proxies: Tensor, classes: int, loss: str) -> tuple[Tensor, Tensor]:
    """Return the cosines of proxies (p, d) and anchors (p, a), and the classes of the anchors (a,).

    Raises:
        InputError: as in `directions`.
    """
    anchors, labels = directions(comparison, proxies.shape[1], classes, loss)
    return products(unit(proxies.to(anchors.dtype)), anchors), labels


def cross_entropies(logits: Tensor, labels: Tensor) -> Terms:
    """Return the cross-entropy of each anchor, from logits of classes and anchors (C, a), as one term per anchor.

    With few classes, a softmax over columns takes a sixth of the time of a softmax over rows.
    """
    return one_term_each(F.cross_entropy(logits[None], labels[None], reduction="none")[0])


def one_term_each(cost: Tensor, penalty: Tensor | None = None) -> Terms:
    """Return one possible term per anchor, from the losses of the anchors (a,)."""
    return Terms(cost, (cost > 0).long(), torch.ones_like(cost, dtype=torch.int64), penalty)
