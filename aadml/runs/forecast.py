"""Estimate of the memory that a metric loss needs in training, measured on a small step before training."""

import copy
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor, nn

from aadml.comparison import Comparison, Terms
from aadml.methods.method import Method
from aadml.objective.objective import terms_of

WORTH_TELLING = 2**28
"""Smallest estimate, in bytes of a step, that is reported to the user."""
PROBE = 256
"""Largest batch that is measured."""
WORKING_MATRICES = 4
"""Temporary matrices of the size of the scores besides the autograd graph: two forward, two backward."""


def forecast(method: Method, clips: int, classes: int) -> str | None:
    """Return a sentence on the memory that the metric loss needs in training.

    Args:
        method: the built, untrained method.
        clips: number of training clips.
        classes: number of classes C.

    Returns:
        The sentence; None below 256 MiB, or if the method has no metric loss.
    """
    metric = method.metric_loss()
    if metric is None:
        return None
    batch, directions = min(metric.batch, clips), metric.directions
    widest = 2 * batch if any("both" in direction for direction in directions) else batch
    memory = step_memory(metric.loss, widest, classes, classes=classes, features=metric.features)
    if memory < WORTH_TELLING:
        return None
    return (
        f"the metric loss needs about {memory / 2**20:,.0f} MiB of memory (batch {batch}, {len(directions)} directions "
        "one after the other), in addition to the encoders; a smaller training.batch needs less"
    )


def step_memory(
    loss: Callable[[Comparison], Terms], batch: int, dimension: int, *, classes: int = 10, features: int = 0
) -> int:
    """Estimate the peak memory of one step of a loss in bytes, without the encoders.

    A step of at most 256 clips is measured; the memory grows with the square of the batch. The step uses a copy of the
    loss, so that the measurement does not change the state of a loss.

    Args:
        loss: the loss, with its options bound.
        batch: number b of anchors, and of candidates.
        dimension: dimension d of the embeddings.
        classes: number of classes of the clips.
        features: width of the penultimate features, for losses that generate samples; 0 if there are none.
    """
    probe, stored = min(batch, PROBE), dict[int, int]()

    def store(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        stored[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(store, lambda tensor: tensor):
        sample = _sample(probe, dimension, classes, features)
        terms_of(copy.deepcopy(loss), sample).total.sum().backward()
    return round(sum(stored.values()) * (batch / probe) ** 2) + WORKING_MATRICES * 4 * batch * batch


def _sample(count: int, dimension: int, classes: int, features: int) -> Comparison:
    random = torch.Generator().manual_seed(0)
    labels = torch.arange(count) % classes

    def rows(width: int) -> Tensor:
        return torch.randn(count, width, generator=random).requires_grad_()

    across = Comparison.of_labels(rows(dimension), rows(dimension), labels, labels)
    across = replace(across, within=torch.zeros_like(across.positives))
    if not features:
        return across
    head = nn.Linear(features, dimension)
    return replace(across, anchor_features=rows(features), candidate_features=rows(features), candidate_head=head)
