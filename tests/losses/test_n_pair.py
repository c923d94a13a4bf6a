import math
from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pytorch_metric_learning import distances, losses
from torch.nn import functional as F

from aadml.comparison import Comparison
from aadml.feature_extraction.ground.errors import InputError
from aadml.losses.n_pair import n_pair


def definition(comparison, multi_positive):
    totals = []
    for i in range(len(comparison.anchors)):
        s = [float(comparison.anchors[i] @ r) for r in comparison.candidates]
        positives = comparison.positives[i].nonzero()[:, 0].tolist()
        negatives = comparison.negatives[i].nonzero()[:, 0].tolist()
        total = 0.0
        for p in positives:
            rivals = positives + negatives if multi_positive else [p, *negatives]
            logarithm = math.log(sum(math.exp(s[j]) for j in rivals)) - s[p]
            total += logarithm / len(positives) if multi_positive else logarithm
        totals.append(total)
    return torch.tensor(totals, dtype=torch.float64)


@given(kind=st.sampled_from(["labels", "ids", "masks"]), seed=st.integers(0, 2**32 - 1), multi_positive=st.booleans())
def test_is_its_definition(draw, kind, seed, multi_positive):
    comparison = draw(kind, seed)
    terms = n_pair(comparison, multi_positive=multi_positive)
    assert torch.allclose(terms.total, definition(comparison, multi_positive), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("multi_positive", [False, True])
def test_of_pairs_is_cross_entropy_with_the_diagonal(draw, multi_positive):
    drawn = draw("ids", 0)
    pairs = Comparison.of_ids(drawn.anchors, drawn.candidates, torch.arange(7), torch.arange(7))
    terms = n_pair(pairs, multi_positive=multi_positive)
    expected = F.cross_entropy(drawn.anchors @ drawn.candidates.T, torch.arange(7), reduction="none")
    assert torch.allclose(terms.total, expected, atol=1e-12)
    assert terms.possible.tolist() == [1] * 7


def test_of_many_positives_is_cross_entropy_with_row_normalised_labels():
    random = torch.Generator().manual_seed(0)
    x, r = (torch.randn(8, 3, generator=random, dtype=torch.float64) for _ in range(2))
    labels = torch.arange(8) % 3
    targets = (labels[:, None] == labels).double()
    terms = n_pair(Comparison.of_labels(x, r, labels, labels), multi_positive=True)
    expected = F.cross_entropy(x @ r.T, targets / targets.sum(1, keepdim=True), reduction="none")
    assert torch.allclose(terms.total, expected, atol=1e-12)


def test_is_the_peers_loss_on_one_pair_a_class():
    random = torch.Generator().manual_seed(1)
    x, r = (torch.randn(6, 3, generator=random, dtype=torch.float64) for _ in range(2))
    labels, row = torch.arange(6), torch.arange(6)
    stranger = (row[:, None] != row).nonzero(as_tuple=True)
    tuples = (row, row + 6, stranger[0], stranger[1] + 6)
    plain = distances.DotProductSimilarity(normalize_embeddings=False)
    peer = losses.NPairsLoss(distance=plain)(torch.cat([x, r]), labels.repeat(2), tuples)
    assert n_pair(Comparison.of_labels(x, r, labels, labels)).total.mean().item() == pytest.approx(peer.item())


def test_penalty_is_of_the_anchors_and_candidates_that_make_pairs():
    anchors, candidates = torch.tensor([[1.0, 2.0], [9.0, 9.0]]), torch.tensor([[3.0, 0.0], [7.0, 7.0]])
    pairs = Comparison.of_labels(anchors, candidates, torch.tensor([0, 5]), torch.tensor([0, 1]))
    assert n_pair(pairs, l2=0.4).penalty.item() == pytest.approx(0.25 * 0.4 * (5 + 9))
    assert n_pair(pairs, l2=0.0).penalty is None


def test_of_equal_scores_is_the_logarithm_of_the_rivals():
    labels = torch.arange(5)
    terms = n_pair(Comparison.of_labels(torch.zeros(5, 2), torch.zeros(5, 2), labels, labels))
    assert terms.total.tolist() == pytest.approx([math.log(5)] * 5)


@pytest.mark.parametrize("multi_positive", [False, True])
def test_gradient_is_that_of_finite_differences(draw, assert_gradients, multi_positive):
    assert_gradients(partial(n_pair, multi_positive=multi_positive), draw("masks", 6))


def test_stays_finite_for_scores_of_a_thousand():
    x = torch.tensor([[1000.0], [-1000.0]], requires_grad=True)
    terms = n_pair(Comparison.of_labels(x, torch.tensor([[-1.0], [1.0]]), torch.arange(2), torch.arange(2)))
    terms.total.sum().backward()
    assert terms.total.tolist() == [2000.0, 2000.0]
    assert torch.isfinite(x.grad).all()


def test_of_relevance_scores_refuses_the_penalty_and_works_without():
    scored = Comparison(
        torch.empty(2, 0),
        torch.empty(2, 0),
        torch.eye(2) > 0,
        torch.eye(2) < 1,
        torch.arange(2),
        relevance=torch.eye(2),
    )
    with pytest.raises(InputError, match=r"l2 option of n-pair needs vectors, .*; set loss\.l2 to 0"):
        n_pair(scored)
    assert n_pair(scored, l2=0.0).total.tolist() == pytest.approx([math.log1p(math.exp(-1))] * 2)
