import math

import pytest
import torch

from aadml.feature_extraction.ground.errors import InputError
from aadml.losses.kernels.likelihood import mean_over_positives, of_each_positive, softplus, tempered
from aadml.losses.kernels.row_blocks import Near

LOGITS = torch.tensor([[1.0, 2.0, 4.0], [0.0, 0.0, 0.0]], dtype=torch.float64)
FIRST_TWO = torch.tensor([[1.0, 1.0, 0.0], [0.0, 0.0, 0.0]], dtype=torch.float64)
LAST = torch.tensor([[0.0, 0.0, 1.0], [0.0, 0.0, 1.0]], dtype=torch.float64)


def test_each_positive_stands_alone_against_the_negatives():
    terms = of_each_positive(LOGITS, Near(FIRST_TWO), LAST)
    assert terms.total.tolist() == pytest.approx([math.log1p(math.exp(3)) + math.log1p(math.exp(2)), 0])
    assert (terms.active.tolist(), terms.possible.tolist()) == ([2, 0], [2, 0])


def test_positives_share_the_softmax_when_their_mean_is_taken():
    terms = mean_over_positives(LOGITS, Near(FIRST_TWO), FIRST_TWO + LAST)
    everyone = math.log(math.exp(1) + math.exp(2) + math.exp(4))
    assert terms.total.tolist() == pytest.approx([everyone - 1.5, 0])
    assert (terms.active.tolist(), terms.possible.tolist()) == ([1, 0], [1, 0])


def test_a_positive_that_is_all_there_is_costs_nothing_and_is_not_active():
    terms = mean_over_positives(LOGITS, Near(LAST), LAST)
    assert terms.total.tolist() == [0, 0]
    assert (terms.active.tolist(), terms.possible.tolist()) == ([0, 0], [1, 1])


def test_softplus_is_exact_where_torchs_own_is_the_identity():
    values = torch.tensor([-800.0, 0.0, 20.5, 800.0], dtype=torch.float64)
    assert softplus(values).tolist() == pytest.approx([0, math.log(2), 20.5 + math.exp(-20.5), 800], rel=0, abs=1e-12)


def test_gradients_are_finite_for_scores_of_any_size():
    logits = (LOGITS * 1e4).requires_grad_()
    for terms in (
        of_each_positive(logits, Near(FIRST_TWO), LAST),
        mean_over_positives(logits, Near(FIRST_TWO), FIRST_TWO + LAST),
    ):
        (gradient,) = torch.autograd.grad(terms.total.sum(), logits)
        assert torch.isfinite(gradient).all()
        assert not gradient[1].any()


@pytest.mark.parametrize("temperature", [0.0, -0.1, math.nan])
def test_refuses_a_temperature_that_is_not_above_zero(temperature):
    with pytest.raises(InputError, match="above 0"):
        tempered(LOGITS, temperature)


@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_a_learned_temperature_has_a_gradient_at_any_value(temperature):
    learned = torch.tensor(temperature, dtype=torch.float64, requires_grad=True)
    tempered(LOGITS, learned).sum().backward()
    assert float(learned.grad) == pytest.approx(-float(LOGITS.sum()) / temperature**2)


def test_shares_are_soft_targets_of_a_cross_entropy():
    random = torch.Generator().manual_seed(0)
    logits = torch.randn(4, 6, generator=random, dtype=torch.float64)
    positives = torch.rand(4, 6, generator=random) < 0.6
    positives[:, 0], positives[:, 5], positives[3, :5] = True, False, False
    shares = torch.rand(4, 6, generator=random, dtype=torch.float64)
    marked = positives.double()
    joint = mean_over_positives(logits, Near(marked), torch.ones_like(marked), shares).total
    single = of_each_positive(logits, Near(marked), 1 - marked, shares).total
    for i in range(4):
        kept = [j for j in range(6) if positives[i, j]]
        whole = sum(float(shares[i, j]) for j in kept)
        logs = logits[i].log_softmax(0)
        assert float(joint[i]) == pytest.approx(
            -sum(float(shares[i, j] * logs[j]) for j in kept) / whole if kept else 0
        )
        cost = 0.0
        for j in kept:
            rivals = [n for n in range(6) if not positives[i, n]]
            one = math.log(1 + sum(math.exp(float(logits[i, n] - logits[i, j])) for n in rivals))
            cost += float(shares[i, j]) * len(kept) / whole * one
        assert float(single[i]) == pytest.approx(cost)
