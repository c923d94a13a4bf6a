from dataclasses import replace
from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from aadml.comparison import Comparison
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.options import OptionValues, idle
from aadml.losses.triplet_weighted import triplet_weighted


def definition(comparison, variant):
    totals = []
    for i, x in enumerate(comparison.anchors):
        s = [float(x @ r / (x.norm() * r.norm())) for r in comparison.candidates]
        negatives = [s[n] for n in comparison.negatives[i].nonzero()[:, 0].tolist()]
        total = 0.0
        for p in comparison.positives[i].nonzero()[:, 0].tolist() if negatives else []:
            pull = 0.5 - 0.7 * s[p] + 0.2 * s[p] ** 2
            if variant == "code":
                h = max(negatives)
                if h + 0.2 > s[p] and s[p] < 1 - 1e-5:
                    total += max(0.0, pull) + max(0.0, 0.03 - 0.4 * h + 0.9 * h**2)
            else:
                total += max(0.0, pull + 0.03 - 0.4 * max(negatives) + 0.9 * max(n**2 for n in negatives))
        totals.append(total)
    return torch.tensor(totals, dtype=torch.float64)


@given(
    kind=st.sampled_from(["labels", "ids", "masks"]),
    seed=st.integers(0, 2**32 - 1),
    variant=st.sampled_from(["code", "paper"]),
)
def test_is_its_definition(draw, kind, seed, variant):
    comparison = draw(kind, seed)
    terms = triplet_weighted(comparison, variant=variant)
    assert torch.allclose(terms.total, definition(comparison, variant), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("variant", ["code", "paper"])
def test_gradient_is_that_of_finite_differences(draw, assert_gradients, variant):
    assert_gradients(partial(triplet_weighted, variant=variant), draw("masks", 1))


def scored(positive, negative):
    scores = torch.tensor([[positive, negative]], dtype=torch.float64)
    empty = torch.empty(1, 0)
    return Comparison(
        empty, torch.empty(2, 0), scores == positive, scores == negative, torch.tensor([0]), relevance=scores
    )


def test_in_the_code_a_negative_of_cosine_zero_costs_three_hundredths():
    assert triplet_weighted(scored(0.1, 0.0)).total.item() == pytest.approx(0.5 - 0.07 + 0.002 + 0.03)


def test_in_the_code_a_positive_beyond_the_margin_costs_nothing():
    assert triplet_weighted(scored(0.9, 0.69)).total.item() == 0
    assert triplet_weighted(scored(0.9, 0.71)).total.item() > 0
    assert triplet_weighted(scored(0.9, 0.69), margin=0.3).total.item() > 0


@pytest.mark.parametrize(("variant", "acts"), [("code", True), ("paper", False)])
def test_the_margin_acts_only_in_the_code(variant, acts):
    said = "loss.margin=0.3 changes nothing: it has an effect only with variant code, not paper"
    assert idle(triplet_weighted, OptionValues(variant=variant, margin=0.3), "loss") == ([] if acts else [said])


def test_in_the_code_a_perfect_positive_is_skipped():
    assert triplet_weighted(scored(1.0, 0.95)).total.item() == 0


def test_in_the_paper_the_square_is_of_the_most_extreme_negative():
    scores = torch.tensor([[0.5, 0.1, -0.8]], dtype=torch.float64)
    comparison = replace(
        scored(0.5, 0.1),
        candidates=torch.empty(3, 0),
        positives=scores == 0.5,
        negatives=scores != 0.5,
        relevance=scores,
    )
    expected = 0.5 - 0.35 + 0.05 + 0.03 - 0.04 + 0.9 * 0.64
    assert triplet_weighted(comparison, variant="paper").total.item() == pytest.approx(expected)


def test_another_variant_is_refused(draw):
    with pytest.raises(InputError, match="is 'mine'; choose code or paper"):
        triplet_weighted(draw("ids", 0), variant="mine")


@pytest.mark.parametrize(("below", "counted"), [(5e-6, 0), (2e-5, 1)])
def test_a_positive_within_1e_5_of_a_perfect_cosine_costs_nothing(below, counted):
    anchor = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    cosine = 1 - below
    near, other = [cosine, (1 - cosine**2) ** 0.5], [1.0, 0.0]
    candidates = torch.tensor([near, other], dtype=torch.float64)
    terms = triplet_weighted(Comparison.of_labels(anchor, candidates, torch.tensor([0]), torch.tensor([0, 1])))
    assert int((terms.total > 0).sum()) == counted
