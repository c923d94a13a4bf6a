import math
from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pytorch_metric_learning import losses
from torch.nn import functional as F

from aadml.comparison import Comparison
from aadml.losses.multi_similarity import multi_similarity


def definition(comparison, alpha, beta, base):
    s = F.cosine_similarity(comparison.anchors[:, None], comparison.candidates[None], dim=2)
    totals = []
    for i in range(len(s)):
        pulled = sum(math.exp(-alpha * (s[i, j] - base)) for j in comparison.positives[i].nonzero()[:, 0])
        pushed = sum(math.exp(beta * (s[i, j] - base)) for j in comparison.negatives[i].nonzero()[:, 0])
        totals.append(math.log1p(pulled) / alpha + math.log1p(pushed) / beta)
    return torch.tensor(totals, dtype=torch.float64)


@given(
    kind=st.sampled_from(["labels", "ids", "masks"]),
    seed=st.integers(0, 2**32 - 1),
    alpha=st.floats(0.1, 20),
    beta=st.floats(0.1, 60),
    base=st.floats(-1, 1),
)
def test_is_its_definition(draw, kind, seed, alpha, beta, base):
    comparison = draw(kind, seed)
    terms = multi_similarity(comparison, alpha=alpha, beta=beta, base=base)
    assert torch.allclose(terms.total, definition(comparison, alpha, beta, base), rtol=1e-9, atol=1e-9)


def test_of_one_positive_and_one_negative_at_the_base_is_two_logarithms_of_two():
    pair = Comparison.of_labels(torch.tensor([[1.0, 0.0]]), torch.eye(2), torch.tensor([0]), torch.tensor([0, 1]))
    assert multi_similarity(pair, alpha=2.0, beta=50.0, base=1.0).total.item() == pytest.approx(math.log(2) / 2)
    assert multi_similarity(pair, alpha=1.0, beta=1.0, base=0.0).total.item() == pytest.approx(
        math.log(1 + math.exp(-1)) + math.log(2)
    )


def test_is_the_peers_loss_over_two_views_with_oneself_left_out():
    views = torch.randn(12, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    labels = (torch.arange(6) % 3).repeat(2)
    terms = multi_similarity(Comparison.of_labels(views, views, labels, labels, itself=torch.arange(12)))
    assert terms.total.mean().item() == pytest.approx(losses.MultiSimilarityLoss(2, 50, 0.5)(views, labels).item())


def test_costs_nothing_without_pairs_and_its_gradient_there_is_zero():
    points = torch.randn(2, 3, requires_grad=True)
    none = torch.zeros(2, 2, dtype=torch.bool)
    terms = multi_similarity(Comparison(points, points.detach(), none, none, torch.full((2,), -1)))
    terms.total.sum().backward()
    assert terms.total.tolist() == [0, 0]
    assert terms.possible.tolist() == [0, 0]
    assert not points.grad.any()


def test_gradient_is_that_of_finite_differences(draw, assert_gradients):
    assert_gradients(partial(multi_similarity, beta=5.0), draw("masks", 1))
