from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from aadml.comparison import Comparison, Terms

Draw = Callable[..., Comparison]


@pytest.fixture(scope="session")
def draw() -> Draw:
    """Batches in float64: by "labels" (some classes alone), by "ids" (captions share clips), by arbitrary "masks"."""
    return _draw


@pytest.fixture(scope="session")
def assert_gradients() -> Callable[[Callable[[Comparison], Terms], Comparison], None]:
    """Compare the gradients of a loss's totals and penalty with finite differences."""
    return _assert_gradients


def _draw(kind: str, seed: int, anchors: int = 7, candidates: int = 7, dimension: int = 4) -> Comparison:
    random = torch.Generator().manual_seed(seed)
    x = torch.randn(anchors, dimension, generator=random, dtype=torch.float64)
    r = torch.randn(candidates, dimension, generator=random, dtype=torch.float64)
    groups = torch.randint(3, (anchors,), generator=random)
    if kind == "labels":
        return Comparison.of_labels(x, r, groups, torch.randint(4, (candidates,), generator=random))
    if kind == "ids":
        return Comparison.of_ids(x, r, groups, groups)
    which = torch.randint(3, (anchors, candidates), generator=random)
    which[0], which[1], which[2] = which[0].clamp_max(1), which[1] * (which[1] != 1), 0
    return Comparison(x, r, which == 1, which == 2, torch.full((anchors,), -1))


def _assert_gradients(loss: Callable[[Comparison], Terms], comparison: Comparison) -> None:
    def outputs(anchors: Tensor, candidates: Tensor) -> tuple[Tensor, ...]:
        terms = loss(replace(comparison, anchors=anchors, candidates=candidates))
        return (terms.total,) if terms.penalty is None else (terms.total, terms.penalty)

    points = (comparison.anchors.clone().requires_grad_(), comparison.candidates.clone().requires_grad_())
    assert torch.autograd.gradcheck(outputs, points)
