import math
from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from aadml.comparison import Comparison
from aadml.feature_extraction.ground.errors import InputError
from aadml.losses.posterior_nca import posterior_nca


def definition(comparison, temperature):
    p, q = (torch.softmax(side / temperature, 1) for side in (comparison.anchors, comparison.candidates))
    totals = []
    for i in range(len(p)):
        alike = sum(float(p[i] @ q[j]) for j in comparison.positives[i].nonzero()[:, 0].tolist())
        other = sum(float(p[i] @ q[j]) for j in comparison.negatives[i].nonzero()[:, 0].tolist())
        totals.append(-math.log(alike / (alike + other)) if alike and other else 0.0)
    return torch.tensor(totals, dtype=torch.float64)


@given(kind=st.sampled_from(["labels", "ids", "masks"]), seed=st.integers(0, 2**32 - 1), temperature=st.floats(0.2, 3))
def test_is_its_definition(draw, kind, seed, temperature):
    comparison = draw(kind, seed)
    terms = posterior_nca(comparison, temperature=temperature)
    assert torch.allclose(terms.total, definition(comparison, temperature), rtol=1e-9, atol=1e-9)


def test_of_posteriors_that_say_nothing_is_minus_the_logarithm_of_the_share_of_positives():
    labels = torch.tensor([0, 0, 1, 1, 1])
    terms = posterior_nca(Comparison.of_labels(torch.zeros(5, 3), torch.zeros(5, 3), labels, labels))
    assert terms.total.tolist() == pytest.approx([math.log(5 / 2)] * 2 + [math.log(5 / 3)] * 3)


def test_vanishes_once_the_classes_are_certain():
    labels = torch.arange(4) % 2
    logits = 50 * torch.nn.functional.one_hot(labels).float()
    terms = posterior_nca(Comparison.of_labels(logits, logits, labels, labels))
    assert terms.total.max() < 1e-6


def test_is_finite_where_certain_posteriors_exclude_each_other():
    logits = torch.tensor([[500.0, 0.0], [0.0, 500.0]], requires_grad=True)
    swapped = torch.tensor([1, 0])
    terms = posterior_nca(Comparison.of_labels(logits, logits, torch.arange(2), swapped))
    terms.total.sum().backward()
    assert torch.isfinite(terms.total).all()
    assert (terms.total > 70).all()
    assert torch.isfinite(logits.grad).all()


@pytest.mark.parametrize("apart", [88.0, 95.0, 500.0])
def test_is_finite_where_many_certain_posteriors_exclude_each_other(apart):
    anchors = torch.tensor([[apart, 0.0, 0.0]] * 64, requires_grad=True)
    candidates = torch.tensor([[0.0, apart, 0.0]] * 63 + [[apart, 0.0, 0.0]], requires_grad=True)
    labels = torch.zeros(64, dtype=torch.int64)
    terms = posterior_nca(Comparison.of_labels(anchors, candidates, labels, torch.tensor([0] * 63 + [1])))
    terms.total.sum().backward()
    assert (terms.total > 70).all()
    assert torch.isfinite(anchors.grad).all()
    assert torch.isfinite(candidates.grad).all()


def test_is_finite_where_only_the_candidates_of_other_classes_are_alike():
    anchors = torch.tensor([[500.0, 0.0]] * 40, requires_grad=True)
    labels = torch.arange(40) % 2
    candidates = 500.0 * torch.nn.functional.one_hot(labels).float()
    terms = posterior_nca(Comparison.of_labels(anchors, candidates, labels, labels))
    terms.total.sum().backward()
    assert torch.isfinite(terms.total).all()
    assert (terms.total[1::2] > 70).all()
    assert torch.isfinite(anchors.grad).all()


def test_gradient_is_that_of_finite_differences(draw, assert_gradients):
    assert_gradients(partial(posterior_nca, temperature=0.7), draw("masks", 2))


def test_refuses_relevance_scores_in_place_of_logits():
    mask = torch.eye(2) > 0
    scored = Comparison(torch.empty(2, 0), torch.empty(2, 0), mask, ~mask, torch.arange(2), relevance=torch.eye(2))
    with pytest.raises(InputError, match="posterior-nca needs vectors"):
        posterior_nca(scored)
