"""What a step of a loss takes, tried out before a training: seconds and memory."""

import copy
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from aadml.comparison import Comparison, Terms
from aadml.objective.objective import terms_of

PROBE = 256
WORKING_MATRICES = 4
"""Score-sized matrices that come and go beside what the graph keeps: two forward, two backward."""


@dataclass(frozen=True)
class Estimate:
    """What one step of a loss takes, without the encoders.

    Attributes:
        seconds: forward and backward, on this machine as busy as it is.
        bytes: memory at the peak.
    """

    seconds: float
    bytes: int


def estimate(
    loss: Callable[[Comparison], Terms], batch: int, dimension: int, *, classes: int = 10, features: int = 0
) -> Estimate:
    """Estimate what one step of a loss takes, from a step of at most 256 clips: both grow with the square of the batch.

    The steps are taken on a copy, so that the loss, which may count its draws, trains as if nothing had been estimated.

    Args:
        loss: with its options bound.
        batch: clips a batch, b anchors against b candidates.
        dimension: d of the embeddings.
        classes: among which the clips are spread.
        features: width of penultimate features, for losses that generate; 0 for none.
    """
    probe, loss = min(batch, PROBE), copy.deepcopy(loss)
    comparison = _sample(probe, dimension, classes, features)
    saved: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        saved[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        terms_of(loss, comparison).total.sum().backward()
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        loss(_sample(probe, dimension, classes, features)).total.sum().backward()
        seconds.append(time.perf_counter() - start)
    growth = (batch / probe) ** 2
    return Estimate(min(seconds) * growth, round(sum(saved.values()) * growth) + WORKING_MATRICES * 4 * batch * batch)


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
