from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pytorch_metric_learning import distances, losses

from aadml.comparison import Comparison
from aadml.losses.hinge import hinge


def definition(comparison, threshold, margin):
    totals = []
    for i, x in enumerate(comparison.anchors):
        total = 0.0
        for j, r in enumerate(comparison.candidates):
            excess = float(((x - r) ** 2).sum()) ** 0.5 - threshold
            if comparison.positives[i, j]:
                total += max(0.0, excess)
            elif comparison.negatives[i, j]:
                total += max(0.0, margin - excess)
        totals.append(total)
    return torch.tensor(totals, dtype=torch.float64)


@given(
    kind=st.sampled_from(["labels", "ids", "masks"]),
    seed=st.integers(0, 2**32 - 1),
    threshold=st.floats(0, 2),
    margin=st.floats(0.1, 3),
)
def test_is_its_definition(draw, kind, seed, threshold, margin):
    comparison = draw(kind, seed)
    terms = hinge(comparison, threshold=threshold, margin=margin)
    assert torch.allclose(terms.total, definition(comparison, threshold, margin), rtol=1e-9, atol=1e-9)


def test_lets_positives_within_the_threshold_and_negatives_beyond_it_go_free():
    candidates = torch.tensor([[0.2], [1.5], [0.3], [1.0]])
    pairs = Comparison.of_labels(torch.zeros(1, 1), candidates, torch.tensor([0]), torch.tensor([0, 1, 1, 0]))
    terms = hinge(pairs)
    assert terms.total.item() == pytest.approx((1.3 - 0.3) + (1.0 - 0.3))
    assert (terms.active.item(), terms.possible.item()) == (2, 4)


def test_without_threshold_is_torch_hinge_embedding_loss(draw):
    comparison = draw("labels", 1)
    signs = torch.where(comparison.positives, 1, -1)
    torchs = torch.nn.HingeEmbeddingLoss(margin=1.0, reduction="none")(comparison.distance, signs)
    assert torch.allclose(hinge(comparison, threshold=0.0).total, torchs.sum(1), atol=1e-12)


def test_is_the_peers_contrastive_loss_with_margins_of_threshold_and_threshold_plus_margin():
    random = torch.Generator().manual_seed(2)
    x, r = (torch.randn(12, 3, generator=random, dtype=torch.float64) * 0.5 for _ in range(2))
    labels = torch.arange(12) % 3
    terms = hinge(Comparison.of_labels(x, r, labels, labels))
    euclid = distances.LpDistance(normalize_embeddings=False)
    parts = losses.ContrastiveLoss(pos_margin=0.3, neg_margin=1.3, distance=euclid).compute_loss(
        x, labels, None, r, labels.clone()
    )
    assert terms.total.sum().item() == pytest.approx(sum(part["losses"].sum().item() for part in parts.values()))


def test_gradient_is_that_of_finite_differences(draw, assert_gradients):
    assert_gradients(partial(hinge, margin=2.0), draw("masks", 4))


def test_gradient_stays_finite_where_vectors_coincide():
    points = torch.ones(4, 2, requires_grad=True)
    labels = torch.arange(4) % 2
    hinge(Comparison.of_labels(points, points, labels, labels)).total.sum().backward()
    assert torch.isfinite(points.grad).all()
