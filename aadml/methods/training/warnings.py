"""Warnings about problems in training, derived from statistics of the epochs."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from aadml.comparison.processes import group

COLLAPSED = 1e-6
PATIENCE = 5
"""Number of consecutive values (usually of epochs) that must meet a condition before a warning."""

INACTIVE_SHARE = 1e-4
"""Largest share of active terms that counts as inactive."""
NEGLIGIBLE_SHARE = 0.05
"""Share of the metric loss's gradient below which training warns. Reading R3 on detached neighbors has a share of
0.005, and every other reading a share of 0.9 or more."""


def collapse_warning(vectors: Tensor) -> str | None:
    """Return the end of a warning if n > 1 embeddings (n, d) coincide or nearly coincide, else None.

    The result begins with "collapsed to one point"; the caller prepends the subject.
    """
    if len(vectors) < 2:
        return None
    variance = float(vectors.var(0).sum())
    scale = float(vectors.square().sum(1).mean())
    if variance > COLLAPSED * max(scale, COLLAPSED):
        return None
    return (
        "collapsed to one point; try a smaller training.learning_rate, or an easier selection if the method has a "
        "selection"
    )


def saturation_warning(shares: Sequence[float]) -> str | None:
    """Return a warning if hardly any term of the metric loss was active in each of the last PATIENCE epochs, else None.

    Args:
        shares: share of active terms in each epoch so far, in order.
    """
    recent = shares[-PATIENCE:]
    if len(recent) < PATIENCE or max(recent) > INACTIVE_SHARE:
        return None
    return (
        f"a share of at most {INACTIVE_SHARE:g} of the terms of the metric loss was active in the last {PATIENCE} "
        "epochs, so the loss no longer trains the encoders; try a harder selection, or a larger margin if the loss has "
        "a margin"
    )


def gradient_warning(norm: float) -> str | None:
    """Return a warning if a gradient norm is zero or not finite, else None.

    Args:
        norm: norm of a player's gradient in the first step of an epoch (see `Player`).
    """
    if norm == 0:
        return (
            "the gradient is zero in the first step of the epoch, so the loss trains nothing in this step; check the "
            "weights and options of the losses"
        )
    if norm != norm or norm == float("inf"):
        return (
            "the gradient is not finite; lower training.learning_rate, set training.clip_norm, or look for extreme "
            "values in the features"
        )
    return None


def gradient_share(value: Tensor, reached: Sequence[nn.Parameter], others: Sequence[nn.Parameter]) -> Tensor:
    """Compute the gradient norm of a scalar at the parameters `reached`, divided by the norm at all parameters.

    Args:
        value: scalar, whose graph is retained.
        reached: parameters of the numerator.
        others: parameters that only the denominator includes.

    Returns:
        A scalar from 0 to 1; 1 if there is no gradient at all.
    """
    parameters = [*reached, *others]
    gradients = torch.autograd.grad(value, parameters, retain_graph=True, allow_unused=True, materialize_grads=True)
    norms = [torch.linalg.vector_norm(gradient.float()) for gradient in group.summed(list(gradients))]
    total = torch.linalg.vector_norm(torch.stack(norms))
    part = torch.linalg.vector_norm(torch.stack(norms[: len(reached)]))
    return torch.where(total > 0, part / total.clamp_min(torch.finfo(total.dtype).tiny), torch.ones_like(total))


def share_warning(share: float) -> str | None:
    """Return a warning if hardly any of the metric loss's gradient reaches the encoders, else None."""
    if not share < NEGLIGIBLE_SHARE:
        return None
    return (
        f"less than {NEGLIGIBLE_SHARE:.0%} of the metric loss's gradient reaches the encoders, so the label loss alone "
        "trains the encoders; set proxy.live=true, proxy.residual=add, or proxy.aa_mix below 1"
    )
