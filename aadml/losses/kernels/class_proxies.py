"""What losses share that own a proxy of each class: how proxies are drawn, and how anchors stand to them."""

import math

import torch
from torch import Tensor, nn

from aadml.comparison import Comparison, Terms
from aadml.comparison.pairwise import dot, normalized
from aadml.feature_extraction.ground.errors import InputError


def drawn_proxies(count: int, dimension: int, length: float, loss: str) -> nn.Parameter:
    """Draw proxies of any direction, about `length` long -> (count, dimension).

    Only their directions are used. Adam moves every entry by about the learning rate, however long the proxies are, so
    that those of length 0.01 turn as those of length 1 would at a hundred times the rate.

    Raises:
        InputError: there are no classes.
    """
    if not count:
        raise InputError(f"{loss} learns a proxy of each class; here there are no classes")
    return nn.Parameter(torch.randn(count, dimension) * length / math.sqrt(dimension))


def directions(comparison: Comparison, width: int, classes: int, loss: str) -> tuple[Tensor, Tensor]:
    """Return unit-norm anchors and their class indices.

    Args:
        comparison: a anchors, with `anchor_class`; candidates are not looked at.
        width: d, of the proxies.
        classes: C, how many there are.
        loss: who asks, for messages.

    Returns:
        Directions (a, d), a zero vector where an anchor is one, and classes (a,).

    Raises:
        InputError: no classes, one that there is no proxy of, or vectors of another width.
    """
    labels = comparison.need("anchor_class", loss)
    if len(labels) and not 0 <= int(labels.min()) <= int(labels.max()) < classes:
        raise InputError(
            f"{loss} has proxies of the classes 0 to {classes - 1}, but the anchors' go from {int(labels.min())} to"
            f" {int(labels.max())}; pairs by id have no classes"
        )
    anchors = comparison.vectors(loss)[0]
    if anchors.shape[1] != width:
        raise InputError(f"{loss} was built for vectors of width {width}, not {anchors.shape[1]}")
    # a zero vector has no direction that a gradient could turn
    return normalized(torch.where(anchors.any(1, keepdim=True), anchors, torch.zeros_like(anchors))), labels


def cosines_to_proxies(comparison: Comparison, proxies: Tensor, classes: int, loss: str) -> tuple[Tensor, Tensor]:
    """Compare anchors with proxies (p, d), and say of which class the anchors are: (a, p) in [-1, 1], and (a,).

    Raises:
        InputError: as `directions` does.
    """
    anchors, labels = directions(comparison, proxies.shape[1], classes, loss)
    return dot(anchors, normalized(proxies.to(anchors.dtype))).clamp(-1, 1), labels


def one_term_each(cost: Tensor, penalty: Tensor | None = None) -> Terms:
    """Make terms of one cost an anchor (a,), all of them possible."""
    return Terms(cost, (cost > 0).long(), torch.ones_like(cost, dtype=torch.int64), penalty)
