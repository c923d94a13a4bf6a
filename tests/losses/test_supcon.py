import math
from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pytorch_metric_learning import losses
from torch.nn import functional as F

from aadml.comparison import Comparison
from aadml.feature_extraction.ground.errors import InputError
from aadml.losses.nt_xent import nt_xent
from aadml.losses.supcon import supcon


def definition(comparison, temperature):
    s = F.cosine_similarity(comparison.anchors[:, None], comparison.candidates[None], dim=2) / temperature
    totals = []
    for i in range(len(s)):
        positives = comparison.positives[i].nonzero()[:, 0].tolist()
        rivals = positives + comparison.negatives[i].nonzero()[:, 0].tolist()
        logarithm = math.log(sum(math.exp(s[i, j]) for j in rivals)) if rivals else 0.0
        totals.append(-sum(float(s[i, p]) - logarithm for p in positives) / max(len(positives), 1))
    return torch.tensor(totals, dtype=torch.float64)


@given(kind=st.sampled_from(["labels", "ids", "masks"]), seed=st.integers(0, 2**32 - 1), temperature=st.floats(0.02, 2))
def test_is_its_definition(draw, kind, seed, temperature):
    comparison = draw(kind, seed)
    terms = supcon(comparison, temperature=temperature)
    assert torch.allclose(terms.total, definition(comparison, temperature), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("temperature", [0.07, 0.1])
def test_is_the_peers_loss_across_modalities(temperature):
    random = torch.Generator().manual_seed(0)
    x, r = (torch.randn(12, 5, generator=random, dtype=torch.float64) for _ in range(2))
    labels = torch.arange(12) % 4
    terms = supcon(Comparison.of_labels(x, r, labels, labels), temperature=temperature)
    peer = losses.SupConLoss(temperature=temperature)(x, labels, ref_emb=r, ref_labels=labels.clone())
    assert terms.total.mean().item() == pytest.approx(peer.item())


def test_is_the_peers_loss_over_two_views_with_oneself_left_out():
    views = torch.randn(12, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    labels = (torch.arange(6) % 3).repeat(2)
    terms = supcon(Comparison.of_labels(views, views, labels, labels, itself=torch.arange(12)), temperature=0.1)
    assert terms.total.mean().item() == pytest.approx(losses.SupConLoss(temperature=0.1)(views, labels).item())


def test_of_pairs_is_nt_xent(draw):
    pairs = draw("ids", 2)
    assert torch.allclose(supcon(pairs).total, nt_xent(pairs).total, atol=1e-9)


def test_costs_at_least_the_logarithm_of_the_positives():
    labels = torch.zeros(4)
    same = torch.ones(4, 2)
    terms = supcon(Comparison.of_labels(same, same, labels, labels))
    assert terms.total.tolist() == pytest.approx([math.log(4)] * 4, rel=1e-5)


def test_costs_nothing_without_positives():
    points = torch.randn(3, 2, requires_grad=True)
    terms = supcon(Comparison.of_labels(points, points.detach(), torch.arange(3), torch.arange(3) + 3))
    terms.total.sum().backward()
    assert terms.total.tolist() == [0, 0, 0]
    assert terms.possible.tolist() == [0, 0, 0]
    assert points.grad.abs().max() == 0


def test_gradient_is_that_of_finite_differences(draw, assert_gradients):
    assert_gradients(partial(supcon, temperature=0.5), draw("masks", 1))


@pytest.mark.parametrize("temperature", [0.0, -1.0])
def test_refuses_a_temperature_that_is_not_positive(draw, temperature):
    with pytest.raises(InputError, match="pass a temperature above 0"):
        supcon(draw("labels", 0), temperature=temperature)
