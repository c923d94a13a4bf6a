"""Watchers: figures of a training that tell when it has gone wrong, in words for people."""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from aadml.comparison.processes import group

COLLAPSED = 1e-6
PATIENCE = 5
"""How many values in a row (epochs, as a rule) must agree before a warning."""

NEGLIGIBLE_SHARE = 0.05
"""Of the metric loss's gradient: reading R3 on detached neighbors keeps 0.005, every other reading 0.9 and more."""


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


def margin_warning(losses: Sequence[float], margin: float, *, tolerance: float = 0.01) -> str | None:
    """Say so where a mean hinge has stayed at its margin: positives are no nearer than negatives, all may be one point.

    Args:
        losses: mean losses so far, in order.
        margin: of the hinge.
        tolerance: how near is at the margin, as a share of it.

    Returns:
        A sentence, or None.
    """
    recent = losses[-PATIENCE:]
    if len(recent) < PATIENCE or any(abs(loss - margin) > tolerance * margin for loss in recent):
        return None
    return (
        f"the loss has stayed at the margin {margin:g} for {PATIENCE} epochs: nothing tells positives from negatives; "
        "try a smaller learning rate or an easier selection"
    )


def saturation_warning(shares: Sequence[float], *, least: float = 1e-4) -> str | None:
    """Say so where hardly a term costs anything any more.

    Args:
        shares: shares of active terms so far, in order.
        least: what counts as none.

    Returns:
        A sentence, or None.
    """
    recent = shares[-PATIENCE:]
    if len(recent) < PATIENCE or max(recent) > least:
        return None
    return (
        f"no more than {max(recent):.2g} of the terms cost anything, for {PATIENCE} epochs: the metric loss teaches "
        "nothing more; try a harder selection or a larger margin"
    )


def gradient_norm(parameters: Iterable[nn.Parameter]) -> float:
    """Give the Euclidean norm of all gradients together; 0 where there are none."""
    norms = [torch.linalg.vector_norm(p.grad.float()) for p in parameters if p.grad is not None]
    return float(torch.linalg.vector_norm(torch.stack(norms))) if norms else 0.0


def gradient_warning(norm: float) -> str | None:
    """Say so where a gradient norm is zero or no number."""
    if norm == 0:
        return "the gradient is zero: nothing is being trained"
    if norm != norm or norm == float("inf"):
        return "the gradient is not finite; try a smaller learning rate, or gradient clipping"
    return None


def gradient_share(value: Tensor, reached: Sequence[nn.Parameter], others: Sequence[nn.Parameter]) -> Tensor:
    """Give the share of a scalar's gradient that reaches some of the parameters: the norm there over the norm of all.

    Args:
        value: whose graph stays.
        reached: the parameters asked about.
        others: those that share the gradient with them.

    Returns:
        A scalar from 0 to 1; 1 where there is no gradient at all.
    """
    asked = [*reached, *others]
    found = torch.autograd.grad(value, asked, retain_graph=True, allow_unused=True)
    gradients = group.summed([torch.zeros_like(p) if g is None else g for g, p in zip(found, asked, strict=True)])
    norms = [torch.linalg.vector_norm(gradient.float()) for gradient in gradients]
    whole = torch.linalg.vector_norm(torch.stack(norms))
    part = torch.linalg.vector_norm(torch.stack(norms[: len(reached)]))
    return torch.where(whole > 0, part / whole.clamp_min(torch.finfo(whole.dtype).tiny), torch.ones_like(whole))


def share_warning(share: float) -> str | None:
    """Say so where next to nothing of the metric loss's gradient reaches the encoders."""
    if not share < NEGLIGIBLE_SHARE:
        return None
    return (
        f"less than {NEGLIGIBLE_SHARE:.0%} of the metric loss's gradient reaches the encoders, the rest stays in the "
        "proxies: the label loss alone trains them; try proxy.live=true, a residual, or proxy.aa_mix below 1"
    )
