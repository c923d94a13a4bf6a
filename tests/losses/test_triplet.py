from dataclasses import replace
from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pytorch_metric_learning import distances, losses, miners, reducers

from aadml.comparison import Comparison
from aadml.comparison.scores import SCORES
from aadml.feature_extraction.ground.errors import InputError
from aadml.losses.triplet import triplet
from aadml.selections import SELECTIONS


def farness(x, r, score):
    if score in ("squared-euclidean", "euclidean"):
        squared = float(((x - r) ** 2).sum())
        return squared if score == "squared-euclidean" else (squared + 1e-12) ** 0.5
    product = float(x @ r)
    return -product if score == "dot" else -product / (float(x.norm()) * float(r.norm()))


def definition(comparison, margin, score):
    totals, active = [], []
    for i, x in enumerate(comparison.anchors):
        d = [farness(x, r, score) for r in comparison.candidates]
        hinges = [
            max(0.0, d[p] - d[n] + margin)
            for p in comparison.positives[i].nonzero()[:, 0].tolist()
            for n in comparison.negatives[i].nonzero()[:, 0].tolist()
        ]
        totals.append(sum(hinges))
        active.append(sum(h > 0 for h in hinges))
    return torch.tensor(totals, dtype=torch.float64), active


@given(
    kind=st.sampled_from(["labels", "ids", "masks"]),
    seed=st.integers(0, 2**32 - 1),
    score=st.sampled_from(sorted(SCORES)),
    margin=st.sampled_from([0.0, 0.2, 1.2, 5.0]),
)
def test_is_its_definition(draw, kind, seed, score, margin):
    comparison = draw(kind, seed)
    totals, active = definition(comparison, margin, score)
    terms = triplet(comparison, margin=margin, score=score)
    assert torch.allclose(terms.total, totals, rtol=1e-9, atol=1e-9)
    assert terms.active.tolist() == active
    assert terms.possible.tolist() == (comparison.positives.sum(1) * comparison.negatives.sum(1)).tolist()


@pytest.mark.parametrize("score", sorted(SCORES))
def test_in_float32_it_is_what_it_is_in_float64(draw, score):
    comparison = draw("labels", 3, anchors=40, candidates=50)
    single = replace(comparison, anchors=comparison.anchors.float(), candidates=comparison.candidates.float())
    expected, _ = definition(comparison, 1.2, score)
    assert torch.allclose(triplet(single, score=score).total.double(), expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("score", sorted(SCORES))
def test_gradient_is_that_of_finite_differences(draw, assert_gradients, score):
    assert_gradients(partial(triplet, score=score), draw("masks", 2))


def test_gradient_in_float32_is_that_of_the_loops(draw):
    comparison = draw("labels", 5)
    x = comparison.anchors.float().requires_grad_()
    triplet(replace(comparison, anchors=x, candidates=comparison.candidates.float())).total.sum().backward()
    y = comparison.anchors.clone().requires_grad_()
    d = (y[:, None] - comparison.candidates[None]).square().sum(2)
    hinges = (d[:, :, None] - d[:, None, :] + 1.2).relu()
    (hinges * (comparison.positives[:, :, None] & comparison.negatives[:, None, :])).sum().backward()
    assert torch.allclose(x.grad.double(), y.grad, rtol=1e-4, atol=1e-4)


def test_is_zero_once_every_negative_is_a_margin_further_away():
    x = torch.tensor([[0.0], [10.0]])
    terms = triplet(Comparison.of_labels(x, x, torch.arange(2), torch.arange(2)), margin=100.0)
    assert terms.total.tolist() == [0.0, 0.0]
    assert terms.active.tolist() == [0, 0]
    assert terms.possible.tolist() == [1, 1]


def test_of_one_point_is_the_margin_per_triplet():
    labels = torch.tensor([0, 0, 1, 1])
    terms = triplet(Comparison.of_labels(torch.ones(4, 3), torch.ones(4, 3), labels, labels), margin=0.5)
    assert terms.total.tolist() == [2.0] * 4
    assert terms.active.tolist() == [4] * 4


def test_a_score_that_does_not_exist_is_answered_with_the_nearest(draw):
    with pytest.raises(InputError, match="did you mean 'cosine'"):
        triplet(draw("ids", 0), score="cosin")


PEER_DISTANCES = {
    "squared-euclidean": distances.LpDistance(power=2, normalize_embeddings=False),
    "euclidean": distances.LpDistance(power=1, normalize_embeddings=False),
    "cosine": distances.CosineSimilarity(),
    "dot": distances.DotProductSimilarity(normalize_embeddings=False),
}


@pytest.mark.parametrize("score", sorted(SCORES))
def test_is_the_peers_loss_over_all_triplets(score):
    random = torch.Generator().manual_seed(2)
    x, r = (torch.randn(24, 5, generator=random, dtype=torch.float64) for _ in range(2))
    labels = torch.arange(24) % 4
    terms = triplet(Comparison.of_labels(x, r, labels, labels), margin=0.7, score=score)
    for reducer, divisor in ((reducers.MeanReducer(), terms.possible), (reducers.AvgNonZeroReducer(), terms.active)):
        peer = losses.TripletMarginLoss(
            margin=0.7, distance=PEER_DISTANCES[score], triplets_per_anchor="all", reducer=reducer
        )
        expected = peer(x, labels, ref_emb=r, ref_labels=labels.clone())
        assert (terms.total.sum() / divisor.sum()).item() == pytest.approx(expected.item(), rel=1e-6)


def test_of_a_set_with_itself_is_the_peers_loss_without_the_diagonal():
    x = torch.randn(20, 4, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    labels = torch.arange(20) % 5
    terms = triplet(Comparison.of_labels(x, x, labels, labels, itself=torch.arange(20)))
    peer = losses.TripletMarginLoss(margin=1.2, distance=PEER_DISTANCES["squared-euclidean"])(x, labels)
    assert (terms.total.sum() / terms.active.sum()).item() == pytest.approx(peer.item(), rel=1e-6)


def test_batch_hard_is_the_peers_miner():
    random = torch.Generator().manual_seed(4)
    x, r = (torch.randn(20, 4, generator=random, dtype=torch.float64) for _ in range(2))
    labels = torch.arange(20) % 5
    hard = SELECTIONS["batch-hard"](Comparison.of_labels(x, r, labels, labels), torch.Generator())
    mined = miners.BatchHardMiner(distance=PEER_DISTANCES["squared-euclidean"])(x, labels, r, labels.clone())
    assert hard.positives.int().argmax(1).tolist() == mined[1].tolist()
    assert hard.negatives.int().argmax(1).tolist() == mined[2].tolist()
    peer = losses.TripletMarginLoss(
        margin=1.2, distance=PEER_DISTANCES["squared-euclidean"], reducer=reducers.MeanReducer()
    )
    expected = peer(x, labels, mined, ref_emb=r, ref_labels=labels.clone())
    assert triplet(hard).total.mean().item() == pytest.approx(expected.item(), rel=1e-6)


def test_complete_triplets_are_the_eight_combinations_of_modalities():
    random = torch.Generator().manual_seed(5)
    sides = [torch.randn(8, 3, generator=random, dtype=torch.float64) for _ in range(2)]
    labels = torch.arange(8) % 3
    both, twice = torch.cat(sides), labels.repeat(2)
    whole = triplet(Comparison.of_labels(both, both, twice, twice, itself=torch.arange(16)))
    expected, count = 0.0, 0
    for a in range(2):
        for p in range(2):
            for n in range(2):
                for i in range(8):
                    for j in range(8):
                        for k in range(8):
                            if labels[i] == labels[j] != labels[k] and not (a == p and i == j):
                                d_p = float((sides[a][i] - sides[p][j]).square().sum())
                                d_n = float((sides[a][i] - sides[n][k]).square().sum())
                                expected, count = expected + max(0.0, d_p - d_n + 1.2), count + 1
    assert whole.total.sum().item() == pytest.approx(expected, rel=1e-9)
    assert int(whole.possible.sum()) == count


LARGE = """
import torch
from aadml.comparison import Comparison
from aadml.losses.triplet import triplet
x, r = (torch.randn(8000, 10, requires_grad=True) for _ in range(2))
labels = torch.arange(8000) % 10
terms = triplet(Comparison.of_labels(x, r, labels, labels))
(terms.total.sum() / terms.active.sum()).backward()
assert x.grad.abs().sum() > 0
"""


@pytest.mark.slow
def test_all_triplets_of_a_batch_of_eight_thousand_fit_in_four_gibibytes(peak_bytes):
    assert peak_bytes(LARGE) < 4 << 30
