from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from aadml.comparison import Comparison
from aadml.comparison.masks import MaskCodes, stored
from aadml.losses import LOSSES
from aadml.losses.kernels import row_blocks, scores
from aadml.losses.kernels.likelihood import mean_over_positives
from aadml.losses.kernels.row_blocks import Near

THROUGH_BLOCKS = (
    "triplet", "ranking", "contrastive", "hinge", "n-pair", "supcon", "nt-xent", "cross-clr", "dsl", "posterior-nca",
    "multi-similarity", "triplet-weighted",
)  # fmt: skip


def batch(size=40, candidates=37, dimension=6, dtype=torch.float64):
    random = torch.Generator().manual_seed(3)
    x, r = (torch.randn(n, dimension, generator=random, dtype=dtype).requires_grad_() for n in (size, candidates))
    comparison = Comparison.of_labels(x, r, torch.arange(size) % 5, torch.arange(candidates) % 6)
    return replace(comparison, within=torch.arange(candidates) % 2 == 0), (x, r)


def gradients(terms, points, weights=None):
    total = terms.total if weights is None else terms.total * weights
    return torch.autograd.grad(total.sum(), points)


@pytest.mark.parametrize("name", THROUGH_BLOCKS)
@pytest.mark.parametrize(("entries", "slab"), [(1, 3), (100, 300), (1 << 18, 3 << 18), (1 << 18, 1)])
def test_the_height_of_blocks_changes_nothing(monkeypatch, name, entries, slab):
    comparison, points = batch()
    whole = LOSSES[name](comparison)
    expected = gradients(whole, points)
    monkeypatch.setitem(scores.BLOCK, "cpu", entries)
    monkeypatch.setattr(scores, "SLAB", slab)
    monkeypatch.setattr(scores, "ROWS", 1)
    cut = LOSSES[name](comparison)
    assert torch.allclose(cut.total, whole.total, rtol=1e-12, atol=1e-12)
    assert torch.equal(cut.active, whole.active)
    assert torch.equal(cut.possible, whole.possible)
    for one, other in zip(gradients(cut, points), expected, strict=True):
        assert torch.allclose(one, other, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", THROUGH_BLOCKS)
@pytest.mark.parametrize("rows", [3, 13])
def test_anchors_that_weigh_differently_pull_differently(monkeypatch, name, rows):
    comparison, points = batch(size=13)
    monkeypatch.setattr(scores, "SLAB", 37 * rows)
    monkeypatch.setattr(scores, "ROWS", 1)
    monkeypatch.setitem(scores.BLOCK, "cpu", 37 * rows)
    weights = torch.linspace(0, 2, len(comparison.anchors), dtype=torch.float64)
    together = gradients(LOSSES[name](comparison), points, weights)
    alone = [
        gradients(LOSSES[name](comparison), points, weights * (torch.arange(len(weights)) == row))
        for row in range(len(weights))
    ]
    for side, gradient in enumerate(together):
        assert torch.allclose(gradient, sum(one[side] for one in alone), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", THROUGH_BLOCKS)
def test_scores_that_a_selection_has_computed_cost_the_same(name):
    comparison, points = batch()
    expected = LOSSES[name](comparison)
    for score in ("squared_distance", "distance", "cosine", "dot"):
        getattr(comparison, score)
    terms = LOSSES[name](comparison)
    assert torch.allclose(terms.total, expected.total, rtol=1e-10, atol=1e-10)
    for one, other in zip(gradients(terms, points), gradients(expected, points), strict=True):
        assert torch.allclose(one, other, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("name", THROUGH_BLOCKS)
def test_a_second_backward_pass_gives_what_the_first_gave(name):
    comparison, points = batch()
    terms = LOSSES[name](comparison)
    first = torch.autograd.grad(3 * terms.total.sum(), points, retain_graph=True)
    for one, other in zip(gradients(terms, points), first, strict=True):
        assert torch.allclose(3 * one, other, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", THROUGH_BLOCKS)
def test_a_gradient_of_a_gradient_is_refused(name):
    comparison, (x, _) = batch()
    (gradient,) = torch.autograd.grad(LOSSES[name](comparison).total.sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match=r"no second derivative|differentiate twice"):
        gradient.sum().backward()


@pytest.mark.parametrize("name", THROUGH_BLOCKS)
def test_masks_of_all_pairs_are_never_made(name):
    points = tuple(torch.randn(n, 6, requires_grad=True) for n in (40, 37))
    codes = MaskCodes((torch.arange(40) % 5, torch.arange(37) % 6), sides=(torch.zeros(40), torch.arange(37) % 2))
    fresh = Comparison(*points, codes.positives, codes.negatives, torch.arange(40), within=codes.within)
    gradients(LOSSES[name](fresh, **({"l2": 0.0} if name == "n-pair" else {})), points)
    assert callable(stored(fresh, "positives"))
    assert callable(stored(fresh, "negatives"))


@pytest.mark.parametrize("name", sorted({*THROUGH_BLOCKS} - {"cross-clr"}))
def test_codes_that_leave_nobody_out_cost_what_their_masks_cost(name):
    points = batch()[1]
    labels = torch.arange(40) % 5, torch.arange(37) % 7  # no anchor is of the classes 5 and 6
    by_codes = Comparison.of_labels(*points, *labels)
    by_masks = Comparison(*points, by_codes.positives, by_codes.negatives, by_codes.own)
    by_codes = Comparison.of_labels(*points, *labels)
    assert by_codes.codes_of_all_pairs()
    assert not by_masks.codes_of_all_pairs()
    terms, expected = LOSSES[name](by_codes), LOSSES[name](by_masks)
    assert torch.allclose(terms.total, expected.total, rtol=1e-12, atol=1e-12)
    assert torch.equal(terms.active, expected.active)
    assert torch.equal(terms.possible, expected.possible)
    for one, other in zip(gradients(terms, points), gradients(expected, points), strict=True):
        assert torch.allclose(one, other, rtol=1e-10, atol=1e-12)


def test_who_is_compared_with_nobody_has_no_gradient_at_all():
    comparison, (x, r) = batch(dtype=torch.float32)
    aside = torch.zeros(37, dtype=torch.bool)
    aside[::3] = True
    for name in ("supcon", "nt-xent", "dsl"):
        narrowed = replace(comparison, positives=comparison.positives & ~aside, negatives=comparison.negatives & ~aside)
        gradient = gradients(LOSSES[name](narrowed, temperature=0.01), (x, r))[1]
        assert not gradient[aside].any()
        assert gradient[~aside].any(1).all()


@pytest.mark.parametrize("name", ["supcon", "nt-xent", "cross-clr", "dsl"])
def test_a_temperature_can_be_learned(name):
    comparison, _ = batch()
    temperature = torch.tensor(0.2, dtype=torch.float64, requires_grad=True)
    learned, given = LOSSES[name](comparison, temperature=temperature), LOSSES[name](comparison, temperature=0.2)
    assert torch.allclose(learned.total, given.total, rtol=1e-12, atol=0)
    (slope,) = torch.autograd.grad(learned.total.sum(), temperature)
    above, below = (LOSSES[name](comparison, temperature=0.2 + step).total.sum().detach() for step in (1e-6, -1e-6))
    assert float(slope) == pytest.approx(float(above - below) / 2e-6, rel=1e-5)


def test_unit_vectors_have_the_gradient_of_torchs_own_and_zero_vectors_have_none():
    vectors = torch.randn(5, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    vectors[1], vectors[2], vectors[3] = 0, vectors[2] * 1e-14, vectors[3] * 1e6
    vectors.requires_grad_()
    weights = torch.arange(15.0, dtype=torch.float64).view(5, 3)
    mine, torchs = (
        torch.autograd.grad((made * weights).sum(), vectors)[0]
        for made in (scores.unit(vectors), F.normalize(vectors, dim=1, eps=1e-12))
    )
    assert torch.allclose(mine[[0, 3, 4]], torchs[[0, 3, 4]], rtol=1e-10, atol=0)
    assert not mine[1:3].any()


@given(seed=st.integers(0, 2**32 - 1), spread=st.floats(1, 200))
def test_no_gradient_is_a_denormal_number(seed, spread):
    random = torch.Generator().manual_seed(seed)
    x, r = (torch.randn(30, 4, generator=random) * spread for _ in range(2))
    labels = torch.arange(30) % 3
    gradients = []

    def cost(rows):
        costs = mean_over_positives(rows.scores, Near(rows.positives), rows.positives + rows.negatives)
        gradients.append(costs.gradient)
        return costs

    comparison = Comparison.of_labels(x, r, labels, labels)
    row_blocks.summed(comparison, scores.scores_of(comparison, "dot"), cost)
    sizes = torch.cat(gradients).abs()
    assert not ((sizes > 0) & (sizes < torch.finfo(torch.float32).tiny)).any()


def test_nothing_is_compared_without_anchors():
    points = torch.zeros(0, 3, requires_grad=True)
    terms = LOSSES["supcon"](Comparison.of_labels(points, torch.ones(4, 3), torch.zeros(0), torch.arange(4.0)))
    assert terms.total.shape == (0,)


@pytest.mark.parametrize("name", sorted({*THROUGH_BLOCKS} - {"cross-clr"}))
def test_nothing_is_compared_without_candidates_of_known_labels(name):
    points = torch.ones(4, 3, requires_grad=True), torch.zeros(0, 3, requires_grad=True)
    terms = LOSSES[name](Comparison.of_labels(*points, torch.arange(4), torch.arange(0)))
    for values in (terms.total, terms.active, terms.possible, *gradients(terms, points)):
        assert not values.any()
    assert terms.total.shape == terms.active.shape == terms.possible.shape == (4,)
