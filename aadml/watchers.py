"""Watchers: figures of a training that tell when it has gone wrong, in words for people."""

from torch import Tensor

COLLAPSED = 1e-6


def collapse_warning(vectors: Tensor) -> str | None:
    """Say so where all embeddings have become one point.

    Args:
        vectors: (n, d) embeddings.

    Returns:
        A sentence, or None where they differ (or are fewer than two).
    """
    if len(vectors) < 2:
        return None
    spread = float(vectors.var(0).sum())
    scale = float(vectors.square().sum(1).mean())
    if spread > COLLAPSED * max(scale, COLLAPSED):
        return None
    return f"collapsed to one point (variance {spread:.2g}); try a smaller learning rate or an easier selection"
