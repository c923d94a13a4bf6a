"""Distances and similarities of all pairs of two sets.

Distances and similarities have the precision of the vectors, also inside `torch.autocast`: scores rounded to 8 bits of
mantissa would rank neighbors wrongly.
"""

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

TINY = 1e-12
UNCHANGED = nullcontext()


def squared_distance(anchors: Tensor, candidates: Tensor) -> Tensor:
    """Compute nonnegative squared Euclidean distances (a, c) of all pairs of anchors (a, d) and candidates (c, d)."""
    return dot(*as_products(anchors, candidates)).relu_()


def as_products(anchors: Tensor, candidates: Tensor) -> tuple[Tensor, Tensor]:
    """Return vectors (a, d + 2) and (c, d + 2) whose inner products are the squared distances of all pairs.

    The squared norm and a 1 are appended to each vector, so that the backward pass needs only two products. The mean
    of the candidates is subtracted from both sets, which changes no distance and avoids cancellation of large norms.
    """
    center = candidates.detach().mean(0) if len(candidates) else torch.zeros_like(candidates.sum(0))
    anchors, candidates = anchors - center, candidates - center
    anchor_norms = anchors.square().sum(1, keepdim=True)
    candidate_norms = candidates.square().sum(1, keepdim=True)
    left = torch.cat([-2 * anchors, anchor_norms, torch.ones_like(anchor_norms)], 1)
    return left, torch.cat([candidates, torch.ones_like(candidate_norms), candidate_norms], 1)


def dot(anchors: Tensor, candidates: Tensor) -> Tensor:
    """Compute the inner products (a, c) of all pairs of anchors (a, d) and candidates (c, d)."""
    with full_precision(anchors):
        return anchors @ candidates.T


def full_precision(values: Tensor) -> AbstractContextManager[object]:
    """Return a context without autocast on the device of `values`."""
    kind = values.device.type
    return torch.autocast(kind, enabled=False) if torch.is_autocast_enabled(kind) else UNCHANGED


def cosine(anchors: Tensor, candidates: Tensor) -> Tensor:
    """Compute the cosine similarities (a, c) of all pairs of anchors (a, d) and candidates (c, d).

    The similarities are in [-1, 1], and 0 for a zero vector.
    """
    return dot(normalized(anchors), normalized(candidates)).clamp(-1, 1)


def normalized(vectors: Tensor) -> Tensor:
    """Return vectors (n, d) scaled to unit length. A vector of length TINY or less becomes 0 and has no gradient."""
    return vectors / lengths(vectors)


def lengths(vectors: Tensor) -> Tensor:
    """Return the norms (n, 1) of vectors (n, d), and infinity for norms of at most TINY."""
    return torch.threshold(torch.linalg.vector_norm(vectors, dim=1, keepdim=True), TINY, torch.inf)


def at_least_float32(values: Tensor) -> Tensor:
    """Convert values to float32; return float32 and float64 unchanged."""
    return values if values.dtype in (torch.float32, torch.float64) else values.float()
