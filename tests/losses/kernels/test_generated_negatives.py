import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from aadml.comparison import Comparison
from aadml.losses.kernels.generated_negatives import (
    CountsDraws,
    Triples,
    by_anchor,
    draw_triples,
    fixed,
    rivals_of,
    triple_cost,
    vector_penalty,
)


def arbitrary(seed, anchors=9, candidates=8):
    random = torch.Generator().manual_seed(seed)
    which = torch.randint(3, (anchors, candidates), generator=random)
    which[0], which[1], which[2] = 0, which[1].clamp_max(1), which[2] * (which[2] != 1)
    x = torch.randn(anchors, 3, generator=random, dtype=torch.float64)
    r = torch.randn(candidates, 3, generator=random, dtype=torch.float64)
    return Comparison(x, r, which == 1, which == 2, torch.full((anchors,), -1))


@given(seed=st.integers(0, 2**32 - 1))
def test_triples_are_of_an_anchor_a_positive_of_it_and_a_negative_of_it(seed):
    comparison = arbitrary(seed)
    triples = draw_triples(comparison, torch.Generator().manual_seed(1))
    assert comparison.positives[triples.anchor, triples.positive].all()
    assert comparison.negatives[triples.anchor, triples.negative].all()
    usable = comparison.positives.any(1) & comparison.negatives.any(1)
    assert torch.equal(triples.anchor, usable.nonzero()[:, 0])


def test_draws_are_even():
    mask = torch.tensor([[True, False, True, True]]).expand(3000, 4)
    comparison = Comparison(torch.zeros(3000, 1), torch.zeros(4, 1), mask, ~mask, torch.full((3000,), -1))
    triples = draw_triples(comparison, torch.Generator().manual_seed(0))
    counts = torch.bincount(triples.positive, minlength=4)
    assert counts[1] == 0
    assert (counts[[0, 2, 3]] - 1000).abs().max() < 120
    assert (triples.negative == 1).all()


@settings(max_examples=25)
@given(seed=st.integers(0, 2**32 - 1), margin=st.floats(0.1, 3))
def test_costs_of_triples_are_their_definitions(seed, margin):
    comparison = arbitrary(seed)
    triples = draw_triples(comparison, torch.Generator().manual_seed(2))
    a, p, n = (
        comparison.anchors[triples.anchor],
        comparison.candidates[triples.positive],
        comparison.candidates[triples.negative] + 0.1,
    )
    rivals = rivals_of(comparison, triples)
    costs = {form: triple_cost(form, a, p, n, rivals, margin) for form in ("triplet", "contrastive", "n-pair")}
    for k in range(len(a)):
        near, far = float(((a[k] - p[k]) ** 2).sum()), float(((a[k] - n[k]) ** 2).sum())
        pushed = 0.5 * max(0.0, margin - far**0.5) ** 2
        crowd = 0.0
        for other in range(len(a)):
            if comparison.negatives[triples.anchor[k], triples.negative[other]]:
                crowd += math.exp(float(a[k] @ n[other]) - float(a[k] @ p[k]))
        assert costs["triplet"][k].item() == pytest.approx(max(0.0, near - far + margin), abs=1e-9)
        assert costs["contrastive"][k].item() == pytest.approx(0.5 * near + pushed, abs=1e-9)
        assert costs["n-pair"][k].item() == pytest.approx(math.log1p(crowd), abs=1e-9)


def test_costs_are_summed_by_anchor():
    triples = Triples(torch.tensor([2, 0, 2]), torch.zeros(3), torch.zeros(3))
    terms = by_anchor(torch.tensor([1.0, 0.0, 4.0]), triples, 4)
    assert terms.total.tolist() == [0, 0, 5, 0]
    assert terms.active.tolist() == [0, 0, 2, 0]
    assert terms.possible.tolist() == [1, 0, 2, 0]


def test_penalty_is_a_quarter_of_the_mean_squared_lengths():
    assert vector_penalty(torch.tensor([[3.0, 4.0]]), torch.tensor([[1.0, 0.0]])).item() == pytest.approx(
        2.6 * 3e-3 / 0.4
    )


def test_a_fixed_module_passes_gradient_to_its_inputs_alone():
    module, inputs = nn.Linear(3, 2), torch.randn(4, 3, requires_grad=True)
    outputs = fixed(module, inputs)
    assert torch.equal(outputs, module(inputs))
    outputs.sum().backward()
    assert inputs.grad.abs().sum() > 0
    assert all(parameter.grad is None for parameter in module.parameters())


@pytest.mark.parametrize("pairs", [0, 1, 3])
def test_the_length_penalty_is_that_of_the_mean_pair(pairs):
    anchor, positive = torch.full((pairs, 2), 2.0), torch.full((pairs, 2), 3.0)
    expected = 3e-3 / 4 * (8.0 + 18.0) if pairs else 0.0
    assert float(vector_penalty(anchor, positive)) == pytest.approx(expected)


def test_the_number_of_draws_stays_on_the_cpu_and_other_buffers_do_not():
    class Counting(CountsDraws):
        def __init__(self):
            super().__init__()
            self.register_buffer("draws", torch.tensor(3))
            self.register_buffer("mean", torch.ones(2))

    moved = Counting().to("meta")
    assert (moved.draws.device.type, int(moved.draws), moved.mean.device.type) == ("cpu", 3, "meta")
    assert moved.to_empty(device="cpu").mean.device.type == "cpu"
    with torch.device("meta"):
        built = Counting()
    assert built.to_empty(device="cpu").draws.device.type == "cpu"
