"""Distances and similarities of all pairs of two sets, and reductions under masks.

All of it is computed in the precision of the arguments, also inside `torch.autocast`: a score rounded to 8 bits of
mantissa decides wrongly who is nearer.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

TINY = 1e-12


def squared_distance(anchors: Tensor, candidates: Tensor) -> Tensor:
    """Squared Euclidean distance of all pairs: anchors (a, d), candidates (c, d) -> (a, c), never negative."""
    return dot(*as_products(anchors, candidates)).relu_()


def as_products(anchors: Tensor, candidates: Tensor) -> tuple[Tensor, Tensor]:
    """Give vectors (a, d + 2) and (c, d + 2) whose inner products are the squared distances of all pairs.

    Each vector has its squared norm and a one appended, so that the backward pass is two products and nothing else.
    Both sets are seen from the candidates' mean, which changes no distance and saves the digits that large norms would
    cancel.
    """
    center = candidates.detach().mean(0) if len(candidates) else torch.zeros_like(candidates.sum(0))
    anchors, candidates = anchors - center, candidates - center
    anchor_norms = anchors.square().sum(1, keepdim=True)
    candidate_norms = candidates.square().sum(1, keepdim=True)
    left = torch.cat([-2 * anchors, anchor_norms, torch.ones_like(anchor_norms)], 1)
    return left, torch.cat([candidates, torch.ones_like(candidate_norms), candidate_norms], 1)


def dot(anchors: Tensor, candidates: Tensor) -> Tensor:
    """Inner product of all pairs (a, c)."""
    with torch.autocast(anchors.device.type, enabled=False):
        return anchors @ candidates.T


def cosine(anchors: Tensor, candidates: Tensor) -> Tensor:
    """Cosine similarity of all pairs (a, c), in [-1, 1]; a zero vector has similarity 0 with everything."""
    return dot(normalized(anchors), normalized(candidates)).clamp(-1, 1)


def normalized(vectors: Tensor) -> Tensor:
    """Bring vectors (n, d) to length 1; a zero vector stays one."""
    return F.normalize(vectors, dim=1, eps=TINY)


def masked_logsumexp(values: Tensor, mask: Tensor) -> Tensor:
    """Log of the sum of exponentials over the entries of `mask`, by row: (a, c) -> (a,).

    A row without entries gives minus infinity, with zero gradient.
    """
    kept = values.masked_fill(~mask, torch.finfo(values.dtype).min)
    return torch.logsumexp(kept, 1).masked_fill(~mask.any(1), -torch.inf)


def at_least_float32(values: Tensor) -> Tensor:
    """Bring half precision to float32; leave float32 and float64 as they are."""
    return values if values.dtype in (torch.float32, torch.float64) else values.float()


def counted(mask: Tensor) -> Tensor:
    """Count the entries of a mask by row: (a, c) -> (a,) int64."""
    return mask.sum(1, dtype=torch.int32).long()


def masked_sum(values: Tensor, mask: Tensor) -> Tensor:
    """Sum over the entries of `mask`, by row: (a, c) -> (a,); entries outside may hold anything."""
    return values.masked_fill(~mask, 0).sum(1)
