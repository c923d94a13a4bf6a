"""Changes of embeddings between two passes, relative to the length of the embeddings."""

import torch
from torch import Tensor

TOLERANCE = 1e-5
"""Largest change of an embedding, relative to its length, that is attributed to rounding."""


def largest_change(before: Tensor, after: Tensor) -> float:
    """Return the largest change from a row of `before` (n, e) to that of `after`, relative to the length of the former.

    Narrower rows of `after` are padded with zeros. The change is infinite for shapes that do not match after padding,
    or for values of `after` that are not finite. For a row shorter than 0.001 of the median length, the change is
    relative to 0.001 of the median length.
    """
    after = as_wide(after, before)
    if before.shape != after.shape or not bool(torch.isfinite(after).all()):
        return float("inf")
    if not before.numel():
        return 0.0
    length = before.double().norm(dim=1)
    floor = 1e-3 * float(length.median()) or 1.0
    return float(((before.double() - after.double()).norm(dim=1) / length.clamp_min(floor)).max())


def as_wide(vectors: Tensor, reference: Tensor) -> Tensor:
    """Pad rows (n, e) with zeros to the width of the reference.

    Widths can differ, because a packed batch is only as wide as its longest sequence.
    """
    missing = reference.shape[1] - vectors.shape[1] if vectors.ndim == reference.ndim == 2 else 0
    return torch.nn.functional.pad(vectors, (0, max(missing, 0)))
