"""Points made up between embeddings: where they lie, for whom they count, what gradient they pass."""

from dataclasses import replace

import torch

from aadml.comparison import Comparison
from aadml.comparison.interpolation import interpolated
from aadml.selections import SELECTIONS

SHARES = (0.25, 0.5, 0.75)
BOTH = ("same-class", "anchor-negative")


def comparison(b=8, classes=3, d=4, gradient=False):
    generator = torch.Generator().manual_seed(0)
    anchors, candidates = torch.randn(2, b, d, generator=generator, dtype=torch.float64).unbind()
    labels = torch.arange(b) % classes
    return Comparison.of_labels(
        anchors.clone().requires_grad_(gradient), candidates.clone().requires_grad_(gradient), labels, labels
    )


def more(given, shares=SHARES, lines=BOTH, seed=0):
    return interpolated(given, torch.Generator().manual_seed(seed), shares=shares, lines=lines)


def test_what_was_there_stays_in_front():
    given = comparison()
    found = more(given)
    assert torch.equal(found.candidates[:8], given.candidates)
    assert torch.equal(found.positives[:, :8], given.positives)
    assert torch.equal(found.negatives[:, :8], given.negatives)
    assert len(found.candidates) == 8 + 2 * 3 * 8
    assert not (found.positives & found.negatives).any()


def test_a_same_class_point_lies_between_two_of_a_class_and_counts_as_one_of_it():
    given = comparison()
    found = more(given, shares=(0.25,), lines=("same-class",))
    labels = given.anchor_class
    for i, point in enumerate(found.candidates[8:]):
        ends = [j for j in range(8) if j != i and labels[j] == labels[i]]
        made = [0.25 * given.candidates[i] + 0.75 * given.candidates[j] for j in ends]
        assert any(torch.allclose(point, one) for one in made)
    assert torch.equal(found.positives[:, 8:], labels[:, None] == labels[None, :])
    assert torch.equal(found.negatives[:, 8:], labels[:, None] != labels[None, :])


def test_a_point_toward_the_nearest_negative_is_a_negative_of_that_anchor_alone():
    given = comparison()
    found = more(given, shares=(0.75,), lines=("anchor-negative",))
    nearest = given.squared_distance.masked_fill(~given.negatives, torch.inf).min(1)
    torch.testing.assert_close(found.candidates[8:], 0.75 * given.anchors + 0.25 * given.candidates[nearest.indices])
    torch.testing.assert_close(found.squared_distance[:, 8:].diagonal(), nearest.values / 16)
    assert torch.equal(found.negatives[:, 8:], torch.eye(8, dtype=torch.bool))
    assert not found.positives[:, 8:].any()


def test_hard_negatives_are_never_easier_and_the_farthest_positive_is_an_end():
    given = comparison(30, 3)
    plain = SELECTIONS["batch-hard"](given, torch.Generator())
    hard = SELECTIONS["batch-hard"](more(given, lines=("same-class",)), torch.Generator())

    def value(one, mask):
        return one.squared_distance.masked_fill(~mask, 0).sum(1)

    torch.testing.assert_close(value(hard, hard.positives), value(plain, plain.positives))
    near, was = value(hard, hard.negatives), value(plain, plain.negatives)
    assert (near <= was + 1e-12).all()
    assert (near < was - 1e-6).any()


def test_gradients_flow_into_both_ends():
    given = comparison(gradient=True)
    found = more(given)
    found.candidates[8:].square().sum().backward()
    assert (given.anchors.grad.abs().sum(1) > 0).all()
    assert (given.candidates.grad.abs().sum(1) > 0).all()


def test_the_only_clip_of_a_class_is_its_own_partner():
    given = comparison(3, 3)
    found = more(given, shares=(0.25,), lines=("same-class",))
    torch.testing.assert_close(found.candidates[3:], given.candidates)


def test_one_class_has_no_negatives_to_go_toward():
    found = more(comparison(4, 1))
    assert not found.negatives.any()
    assert torch.isfinite(found.candidates).all()


def test_an_anchor_is_no_end_of_a_positive_of_its_own():
    """Where anchors are among the candidates, a point on a line from the anchor to another would be no honest one."""
    x = torch.randn(6, 3, generator=torch.Generator().manual_seed(0))
    labels = torch.arange(6) % 2
    given = Comparison.of_labels(x, x, labels, labels, itself=torch.arange(6))
    found = more(given, shares=(0.5,), lines=("same-class",))
    for i in range(6):
        for j in found.positives[i, 6:].nonzero().flatten().tolist():
            assert not torch.allclose(found.candidates[6 + j] * 2 - x[j], x[i])
            assert j != i


def test_a_point_counts_for_an_anchor_as_both_its_ends_do():
    whole = comparison(12, 2)
    seen = torch.rand(whole.positives.shape, generator=torch.Generator().manual_seed(1)) < 0.6
    given = replace(whole, positives=whole.positives & seen, negatives=whole.negatives & seen)
    found = more(given, shares=(0.5,), lines=("same-class",))
    other = torch.cdist(2 * found.candidates[12:] - given.candidates, given.candidates).argmin(1)
    assert torch.equal(found.positives[:, 12:], given.positives & given.positives[:, other])
    assert torch.equal(found.negatives[:, 12:], given.negatives & given.negatives[:, other])


def test_without_lines_nothing_is_made_up():
    assert len(more(comparison(), lines=()).candidates) == 8
