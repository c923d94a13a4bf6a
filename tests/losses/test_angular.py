import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pytorch_metric_learning import losses

from aadml.comparison import Comparison
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.options import OptionValues
from aadml.feature_extraction.ground.validation import checked_options
from aadml.losses.angular import angular


def unit(vector):
    return vector / vector.norm()


def definition(comparison, alpha):
    slope = math.tan(math.radians(alpha)) ** 2
    anchors, candidates = [[unit(v) for v in side] for side in (comparison.anchors, comparison.candidates)]
    totals = []
    for i, x in enumerate(anchors):
        total = 0.0
        for p in comparison.positives[i].nonzero()[:, 0].tolist():
            crowd = 0.0
            for n in comparison.negatives[i].nonzero()[:, 0].tolist():
                pull = 2 * (1 + slope) * float(x @ candidates[p])
                crowd += math.exp(4 * slope * float((x + candidates[p]) @ candidates[n]) - pull)
            total += math.log1p(crowd)
        totals.append(total)
    return torch.tensor(totals, dtype=torch.float64)


@given(kind=st.sampled_from(["labels", "ids", "masks"]), seed=st.integers(0, 2**32 - 1), alpha=st.floats(1, 70))
def test_is_its_definition(draw, kind, seed, alpha):
    comparison = draw(kind, seed)
    assert torch.allclose(angular(comparison, alpha=alpha).total, definition(comparison, alpha), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("classes", [1, 2, 5])
@pytest.mark.parametrize("hidden", [False, True])
def test_many_anchors_of_few_classes_cost_their_definition(classes, hidden):
    random = torch.Generator().manual_seed(classes)
    x, r = (torch.randn(count, 3, generator=random, dtype=torch.float64).requires_grad_() for count in (43, 29))
    labels = [torch.randint(classes, (count,), generator=random) for count in (43, 29)]
    comparison = Comparison.of_labels(x, r, *labels)
    if hidden:  # as a selection leaves masks: classes share no longer all their positives
        kept = torch.rand(43, 29, generator=random) < 0.7
        comparison = replace(comparison, positives=comparison.positives & kept, negatives=comparison.negatives & kept)
    total = angular(comparison, alpha=45.0).total
    with torch.no_grad():
        still = replace(comparison, anchors=x.detach(), candidates=r.detach())
        assert torch.allclose(total, definition(still, 45.0), rtol=1e-9, atol=1e-9)
    found = torch.autograd.grad(total.sum(), (x, r), retain_graph=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("aadml.losses.angular.MANY", 10**9)
        expected = torch.autograd.grad(angular(comparison, alpha=45.0).total.sum(), (x, r))
    assert all(torch.allclose(*pair, rtol=1e-9, atol=1e-12) for pair in zip(found, expected, strict=True))


@pytest.mark.parametrize("alpha", [40, 45])
def test_is_the_peers_loss_across_modalities(alpha):
    random = torch.Generator().manual_seed(0)
    x, r = (torch.randn(12, 5, generator=random, dtype=torch.float64) for _ in range(2))
    labels = torch.arange(12) % 4
    terms = angular(Comparison.of_labels(x, r, labels, labels), alpha=float(alpha))
    r = torch.nn.functional.normalize(r)  # the peer takes its negatives as they come
    peer = losses.AngularLoss(alpha=alpha)(x, labels, ref_emb=r, ref_labels=labels.clone())
    assert (terms.total.sum() / terms.possible.sum()).item() == pytest.approx(peer.item(), rel=1e-6)


def test_of_a_perpendicular_negative_is_known():
    pair = Comparison.of_labels(
        torch.tensor([[2.0, 0.0]]), torch.tensor([[1.0, 0.0], [0.0, 3.0]]), torch.tensor([0]), torch.tensor([0, 1])
    )
    assert angular(pair, alpha=45.0).total.item() == pytest.approx(math.log1p(math.exp(-4)))


def test_costs_nothing_without_negatives():
    points = torch.randn(3, 2, requires_grad=True)
    terms = angular(Comparison.of_labels(points, points, torch.zeros(3), torch.zeros(3)))
    terms.total.sum().backward()
    assert terms.total.tolist() == [0, 0, 0]
    assert terms.possible.tolist() == [0, 0, 0]
    assert points.grad.abs().max() == 0


def test_gradient_is_that_of_finite_differences(draw, assert_gradients):
    assert_gradients(angular, draw("masks", 2))


def test_is_finite_in_float32_at_the_steepest_angle():
    x = torch.tensor([[1.0, 0.0], [-1.0, 0.0]], requires_grad=True)
    for labels in (torch.tensor([0, 1]), torch.tensor([1, 0])):
        terms = angular(Comparison.of_labels(x, x, torch.arange(2), labels), alpha=70.0)
        (gradient,) = torch.autograd.grad(terms.total.sum(), x)
        assert torch.isfinite(terms.total).all()
        assert torch.isfinite(gradient).all()


@pytest.mark.parametrize("alpha", [0.0, -5.0, 71.0, 90.0])
def test_angles_out_of_range_are_refused(alpha):
    with pytest.raises(InputError, match="number \\(degrees\\) above 0 to 70"):
        checked_options(angular, OptionValues(alpha=alpha), "loss")
