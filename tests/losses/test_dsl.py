import math
from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from aadml.comparison import Comparison
from aadml.feature_extraction.ground.errors import InputError
from aadml.losses.dsl import dsl
from aadml.losses.supcon import supcon


def definition(comparison, temperature, prior_temperature):
    s = F.cosine_similarity(comparison.anchors[:, None], comparison.candidates[None], dim=2) / temperature
    met = comparison.positives | comparison.negatives
    weighed = torch.zeros_like(s)
    for j in range(s.shape[1]):
        rows = met[:, j].nonzero()[:, 0].tolist()
        norm = sum(math.exp(s[i, j] / prior_temperature) for i in rows)
        for i in rows:
            weighed[i, j] = s[i, j] * math.exp(s[i, j] / prior_temperature) / norm * len(rows)
    totals = []
    for i in range(len(s)):
        positives = comparison.positives[i].nonzero()[:, 0].tolist()
        rivals = sum(math.exp(weighed[i, j]) for j in met[i].nonzero()[:, 0].tolist())
        totals.append(sum(math.log(rivals) - float(weighed[i, p]) for p in positives) / max(len(positives), 1))
    return torch.tensor(totals, dtype=torch.float64)


@given(
    kind=st.sampled_from(["labels", "ids", "masks"]),
    seed=st.integers(0, 2**32 - 1),
    temperature=st.floats(0.05, 2),
    prior_temperature=st.floats(1, 1000),
)
def test_is_its_definition(draw, kind, seed, temperature, prior_temperature):
    comparison = draw(kind, seed)
    terms = dsl(comparison, temperature=temperature, prior_temperature=prior_temperature)
    assert torch.allclose(terms.total, definition(comparison, temperature, prior_temperature), rtol=1e-9, atol=1e-9)


def test_of_pairs_is_the_published_code(draw):
    drawn, row = draw("ids", 0), torch.arange(7)
    similarity = F.normalize(drawn.anchors) @ F.normalize(drawn.candidates).T / 0.05
    weighed = similarity * F.softmax(similarity / 1000, 0) * 7
    expected = -F.log_softmax(weighed, -1).diag()
    terms = dsl(Comparison.of_ids(drawn.anchors, drawn.candidates, row, row))
    assert torch.allclose(terms.total, expected, atol=1e-9)


def test_with_a_flat_prior_is_supcon(draw):
    comparison = draw("masks", 3)
    flat = dsl(comparison, temperature=0.5, prior_temperature=1e12)
    assert torch.allclose(flat.total, supcon(comparison, temperature=0.5).total, atol=1e-9)


def test_costs_less_when_the_candidate_prefers_its_anchor():
    x = torch.tensor([[1.0, 0.0], [0.8, 0.6]])
    r = torch.tensor([[1.0, 0.0], [0.7, 0.7]])
    pairs = Comparison.of_ids(x, r, torch.arange(2), torch.arange(2))
    assert (dsl(pairs, prior_temperature=1.0).total < dsl(pairs).total).all()


def test_ignores_what_is_in_neither_mask(draw):
    comparison = draw("masks", 8)
    ignored = ~(comparison.positives | comparison.negatives)
    anywhere = Comparison(
        comparison.anchors, comparison.candidates, comparison.positives, comparison.negatives, comparison.own
    )
    anywhere.__dict__["_cosine"] = comparison.cosine.masked_fill(ignored, 0.99)
    assert torch.allclose(dsl(anywhere).total, dsl(comparison).total, atol=1e-12)


@pytest.mark.parametrize(("temperature", "prior_temperature"), [(0.05, 0.1), (0.05, 0.01), (0.01, 0.3)])
def test_a_sharp_prior_counts_for_nothing_where_an_anchor_meets_itself(draw, temperature, prior_temperature):
    points, labels, itself = draw("labels", 0, candidates=9).candidates, torch.arange(9) % 3, torch.arange(9)
    found = []
    for own in (points.clone().requires_grad_(), points.float().requires_grad_()):
        comparison = Comparison.of_labels(own, own, labels, labels, itself=itself)
        terms = dsl(comparison, temperature=temperature, prior_temperature=prior_temperature)
        terms.total.sum().backward()
        found.append((terms.total.double(), own.grad.double()))
    (total, gradient), (rounded, rounded_gradient) = found
    assert torch.isfinite(total).all()
    assert torch.allclose(rounded, total, rtol=1e-2)
    assert torch.allclose(rounded_gradient, gradient, atol=5e-2 * float(gradient.abs().max()))


def test_with_a_sharp_prior_among_others_than_itself_is_its_definition(draw):
    points, labels = draw("labels", 0, candidates=9).candidates, torch.arange(9) % 3
    comparison = Comparison.of_labels(points, points, labels, labels, itself=torch.arange(9))
    wanted = definition(comparison, 0.05, 0.2)
    assert torch.allclose(dsl(comparison, temperature=0.05, prior_temperature=0.2).total, wanted, rtol=1e-9)


def test_costs_nothing_when_nobody_meets_anybody():
    points = torch.randn(3, 2, requires_grad=True)
    nobody = torch.zeros(3, 3, dtype=torch.bool)
    terms = dsl(Comparison(points, points, nobody, nobody, torch.arange(3)))
    terms.total.sum().backward()
    assert terms.total.tolist() == [0, 0, 0]
    assert points.grad.abs().max() == 0


def test_gradient_is_that_of_finite_differences(draw, assert_gradients):
    assert_gradients(partial(dsl, temperature=0.5, prior_temperature=2.0), draw("masks", 2))


@pytest.mark.parametrize("option", ["temperature", "prior_temperature"])
def test_refuses_temperatures_that_are_not_positive(draw, option):
    with pytest.raises(InputError, match="pass a temperature above 0"):
        dsl(draw("labels", 0), **{option: 0.0})
