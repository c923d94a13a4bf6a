from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pytorch_metric_learning import distances, losses

from aadml.comparison import Comparison
from aadml.losses.contrastive import contrastive

KINDS = st.sampled_from(["labels", "ids", "masks"])


def definition(comparison, margin, squared):
    totals = []
    for i, x in enumerate(comparison.anchors):
        total = 0.0
        for j, r in enumerate(comparison.candidates):
            d = float(((x - r) ** 2).sum())
            d = d if squared else d**0.5
            if comparison.positives[i, j]:
                total += 0.5 * d**2
            elif comparison.negatives[i, j]:
                total += 0.5 * max(0.0, margin - d) ** 2
        totals.append(total)
    return torch.tensor(totals, dtype=torch.float64)


@given(kind=KINDS, seed=st.integers(0, 2**32 - 1), margin=st.floats(0.1, 4), squared=st.booleans())
def test_is_its_definition(draw, kind, seed, margin, squared):
    comparison = draw(kind, seed)
    terms = contrastive(comparison, margin=margin, legacy_eq9_distance=squared)
    assert torch.allclose(terms.total, definition(comparison, margin, squared), rtol=1e-9, atol=1e-9)


def test_of_a_pair_at_distance_two_and_a_stranger_at_half_is_known():
    pairs = Comparison.of_labels(
        torch.zeros(1, 1), torch.tensor([[2.0], [0.5]]), torch.tensor([0]), torch.tensor([0, 1])
    )
    terms = contrastive(pairs)
    assert terms.total.item() == pytest.approx(0.5 * 4 + 0.5 * 0.25)
    assert (terms.active.item(), terms.possible.item()) == (2, 2)


def test_costs_nothing_once_positives_coincide_and_negatives_are_out_of_the_ball():
    points = torch.tensor([[0.0, 0.0], [3.0, 0.0]], requires_grad=True)
    same = points.detach().clone()
    terms = contrastive(Comparison.of_labels(points, same, torch.arange(2), torch.arange(2)))
    terms.total.sum().backward()
    assert terms.total.abs().max() < 1e-6
    assert points.grad.abs().max() < 1e-6


@pytest.mark.parametrize("squared", [False, True])
def test_gradient_is_that_of_finite_differences(draw, assert_gradients, squared):
    assert_gradients(partial(contrastive, margin=2.0, legacy_eq9_distance=squared), draw("labels", 3))


def test_pulls_as_the_peer_does_with_squared_distance(draw):
    comparison = draw("labels", 5, anchors=12, candidates=12)
    labels, others = torch.arange(12) % 3, torch.arange(12) % 4
    ours = contrastive(Comparison.of_labels(comparison.anchors, comparison.candidates, labels, others), margin=0.0)
    peer = losses.ContrastiveLoss(
        pos_margin=0,
        neg_margin=0,
        distance=distances.LpDistance(power=2, normalize_embeddings=False),
    )(comparison.anchors, labels, ref_emb=comparison.candidates, ref_labels=others)
    assert ours.total.sum().item() / int((labels[:, None] == others).sum()) == pytest.approx(0.5 * peer.item())
