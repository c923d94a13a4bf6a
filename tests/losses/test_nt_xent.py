import math
from dataclasses import replace
from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pytorch_metric_learning import losses
from torch.nn import functional as F

from aadml.comparison import Comparison
from aadml.losses.nt_xent import nt_xent


def definition(comparison, temperature, mask_same_id=True):
    s = F.cosine_similarity(comparison.anchors[:, None], comparison.candidates[None], dim=2) / temperature
    negative = comparison.negatives if mask_same_id else ~comparison.positives
    totals = []
    for i in range(len(s)):
        negatives = negative[i].nonzero()[:, 0].tolist()
        total = 0.0
        for p in comparison.positives[i].nonzero()[:, 0].tolist():
            total += math.log(sum(math.exp(s[i, j]) for j in [p, *negatives])) - float(s[i, p])
        totals.append(total)
    return torch.tensor(totals, dtype=torch.float64)


@given(
    kind=st.sampled_from(["labels", "ids", "masks"]),
    seed=st.integers(0, 2**32 - 1),
    temperature=st.floats(0.02, 2),
    mask_same_id=st.booleans(),
)
def test_is_its_definition(draw, kind, seed, temperature, mask_same_id):
    comparison = draw(kind, seed)
    terms = nt_xent(comparison, temperature=temperature, mask_same_id=mask_same_id)
    assert torch.allclose(terms.total, definition(comparison, temperature, mask_same_id), rtol=1e-9, atol=1e-9)


def test_of_pairs_is_torch_cross_entropy_with_the_diagonal(draw):
    drawn = draw("ids", 0)
    pairs = Comparison.of_ids(drawn.anchors, drawn.candidates, torch.arange(7), torch.arange(7))
    logits = F.normalize(drawn.anchors) @ F.normalize(drawn.candidates).T / 0.07
    assert torch.allclose(nt_xent(pairs).total, F.cross_entropy(logits, torch.arange(7), reduction="none"), atol=1e-9)


def test_without_the_mask_captions_of_the_same_clip_are_negatives_as_in_the_authors_code(draw):
    pairs = draw("ids", 1)
    logits = F.normalize(pairs.anchors) @ F.normalize(pairs.candidates).T / 0.07
    literal = F.cross_entropy(logits, torch.arange(7), reduction="none")
    assert torch.allclose(nt_xent(pairs, mask_same_id=False).total, literal, atol=1e-9)
    assert (nt_xent(pairs).total < literal).any()


def test_without_the_mask_an_anchor_does_not_compete_with_itself(draw):
    pairs = draw("ids", 3)
    both = torch.cat([pairs.anchors, pairs.candidates])
    clips = torch.arange(7).repeat(2)
    modality = torch.arange(14) // 7
    comparison = replace(
        Comparison.of_ids(both, both, clips, clips, own=torch.arange(14).roll(7)),
        within=modality[:, None] == modality,
    )
    assert torch.equal(nt_xent(comparison, mask_same_id=False).total, nt_xent(comparison).total)


def test_is_the_peers_loss_with_many_positives():
    random = torch.Generator().manual_seed(0)
    x, r = (torch.randn(12, 5, generator=random, dtype=torch.float64) for _ in range(2))
    labels = torch.arange(12) % 4
    terms = nt_xent(Comparison.of_labels(x, r, labels, labels))
    peer = losses.NTXentLoss(temperature=0.07)(x, labels, ref_emb=r, ref_labels=labels.clone())
    assert (terms.total.sum() / terms.possible.sum()).item() == pytest.approx(peer.item())


def test_by_unique_labels_and_by_unique_ids_is_the_same(draw):
    drawn, row = draw("ids", 4), torch.arange(7)
    by_label = nt_xent(Comparison.of_labels(drawn.anchors, drawn.candidates, row, row))
    by_id = nt_xent(Comparison.of_ids(drawn.anchors, drawn.candidates, row, row))
    assert torch.equal(by_label.total, by_id.total)


def test_of_equal_vectors_is_the_logarithm_of_the_batch():
    row, same = torch.arange(5), torch.ones(5, 2)
    assert nt_xent(Comparison.of_ids(same, same, row, row)).total.tolist() == pytest.approx([math.log(5)] * 5, rel=1e-5)


def test_costs_nothing_when_the_whole_batch_is_one_clip():
    points = torch.randn(4, 3, requires_grad=True)
    clip = torch.zeros(4)
    terms = nt_xent(Comparison.of_ids(points, points.detach(), clip, clip))
    terms.total.sum().backward()
    assert terms.total.tolist() == [0] * 4
    assert terms.possible.tolist() == [0] * 4
    assert points.grad.abs().max() == 0


@pytest.mark.parametrize("mask_same_id", [True, False])
def test_gradient_is_that_of_finite_differences(draw, assert_gradients, mask_same_id):
    assert_gradients(partial(nt_xent, temperature=0.5, mask_same_id=mask_same_id), draw("ids", 1))
