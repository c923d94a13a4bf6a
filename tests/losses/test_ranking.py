from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from aadml.comparison import Comparison
from aadml.feature_extraction.ground.errors import InputError
from aadml.losses.ranking import ranking
from aadml.selections import SELECTIONS

FORMS = ["hinge_then_mean", "mean_then_hinge"]


def definition(comparison, margin, full_reduce):
    totals = []
    for i, x in enumerate(comparison.anchors):
        s = [float(x @ r) for r in comparison.candidates]
        negatives = comparison.negatives[i].nonzero()[:, 0].tolist()
        total = 0.0
        for p in comparison.positives[i].nonzero()[:, 0].tolist():
            if negatives and full_reduce == "hinge_then_mean":
                total += sum(max(0.0, s[n] - s[p] + margin) for n in negatives) / len(negatives)
            elif negatives:
                total += max(0.0, sum(s[n] for n in negatives) / len(negatives) - s[p] + margin)
        totals.append(total)
    return torch.tensor(totals, dtype=torch.float64)


@given(
    kind=st.sampled_from(["labels", "ids", "masks"]),
    seed=st.integers(0, 2**32 - 1),
    full_reduce=st.sampled_from(FORMS),
    margin=st.sampled_from([0.0, 0.5, 1.0]),
)
def test_is_its_definition(draw, kind, seed, full_reduce, margin):
    comparison = draw(kind, seed)
    terms = ranking(comparison, margin=margin, full_reduce=full_reduce)
    assert torch.allclose(terms.total, definition(comparison, margin, full_reduce), rtol=1e-9, atol=1e-9)
    contested = comparison.negatives.any(1)
    assert terms.possible.tolist() == (comparison.positives.sum(1) * contested).tolist()


@pytest.mark.parametrize("full_reduce", FORMS)
def test_gradient_is_that_of_finite_differences(draw, assert_gradients, full_reduce):
    assert_gradients(partial(ranking, full_reduce=full_reduce), draw("masks", 3))


@given(seed=st.integers(0, 2**32 - 1))
def test_the_mean_of_hinges_is_never_less_than_the_hinge_of_the_mean(draw, seed):
    comparison = draw("labels", seed)
    first, second = (ranking(comparison, full_reduce=form).total for form in FORMS)
    assert (first >= second - 1e-9).all()


@pytest.mark.parametrize("name", ["random", "hardest", "semi-hard-two-sided"])
def test_with_one_negative_an_anchor_it_is_equation_four_either_way(draw, name):
    pairs = draw("ids", 2)
    options = {"score": "dot"} if name != "random" else {}
    options |= {"positive": "own"} if name == "hardest" else {}
    kept = SELECTIONS[name](pairs, torch.Generator().manual_seed(0), **options)
    first, second = (ranking(kept, full_reduce=form).total for form in FORMS)
    assert torch.allclose(first, second)
    s = kept.dot
    chosen = kept.negatives.int().argmax(1, keepdim=True)
    expected = (s.gather(1, chosen)[:, 0] - s.diagonal() + 1).relu() * kept.negatives.any(1)
    assert torch.allclose(first, expected)


def test_a_batch_of_one_clip_costs_nothing():
    x = torch.ones(3, 2, requires_grad=True)
    terms = ranking(Comparison.of_ids(x, x, torch.zeros(3), torch.zeros(3)))
    terms.total.sum().backward()
    assert terms.total.tolist() == [0.0] * 3
    assert not x.grad.any()


def test_another_order_is_refused(draw):
    with pytest.raises(InputError, match="is 'mean'; choose hinge_then_mean or mean_then_hinge"):
        ranking(draw("ids", 0), full_reduce="mean")
