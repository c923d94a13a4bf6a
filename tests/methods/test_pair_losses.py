"""Costs of pairs in a common space, against their definitions as loops."""

import math

import pytest
import torch

from aadml.methods.pair_losses import partner_distance, same_class_loss, same_class_losses


def drawn(b=6, d=4, seed=0):
    generator = torch.Generator().manual_seed(seed)
    vectors = {m: torch.randn(b, d, generator=generator, dtype=torch.float64) for m in ("audio", "visual")}
    return vectors, torch.arange(b) % 3


def loop(first, second, labels):
    total = 0.0
    for i, x in enumerate(first):
        for j, y in enumerate(second):
            theta = float(x @ y / x.norm() / y.norm()) / 2
            total += math.log(1 + math.exp(theta)) - theta * (labels[i] == labels[j])
    return total / len(first) / len(second)


def test_the_cost_of_pairs_is_its_definition():
    vectors, labels = drawn()
    expected = loop(vectors["audio"], vectors["visual"], labels.tolist())
    assert float(same_class_loss(vectors["audio"], vectors["visual"], labels)) == pytest.approx(expected, abs=1e-12)


def test_the_sum_has_each_modality_with_itself_and_each_two_once():
    vectors, labels = drawn()
    audio, visual = vectors.values()
    expected = sum(loop(a, b, labels.tolist()) for a, b in ((audio, audio), (audio, visual), (visual, visual)))
    assert float(same_class_losses(vectors, labels)) == pytest.approx(expected, abs=1e-12)


def test_pairs_of_one_class_are_drawn_together_and_others_apart():
    x = torch.tensor([[1.0, 0.0]], requires_grad=True)
    y = torch.tensor([[0.6, 0.8], [0.6, 0.8]])
    together = torch.autograd.grad(same_class_loss(x, y, torch.tensor([0])), x)[0]
    theta = 0.3
    slope = (1 / (1 + math.exp(-theta)) - 1) / 2
    # the gradient of the cosine at a unit vector is the part of y across it
    torch.testing.assert_close(together, slope * torch.tensor([[0.0, 0.8]]))


def test_partners_are_apart_by_their_mean_distance():
    vectors = {"audio": torch.tensor([[0.0, 0.0], [1.0, 1.0]]), "visual": torch.tensor([[3.0, 4.0], [1.0, 1.0]])}
    assert float(partner_distance(vectors)) == pytest.approx(2.5)


def test_gradients_are_finite_where_partners_coincide_or_vanish():
    same = torch.zeros(3, 2, requires_grad=True)
    (partner_distance({"audio": same, "visual": same * 1}) + same_class_loss(same, same, torch.arange(3))).backward()
    assert torch.isfinite(same.grad).all()
