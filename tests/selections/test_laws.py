"""What every selection must hold, present and future."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from aadml.comparison import Comparison
from aadml.feature_extraction.ground.options import schema
from aadml.selections import SELECTIONS

EVERY = sorted(SELECTIONS)
DRAWS = {
    "one-pair-a-class": "a pair of each class by lot",
    "random": "a negative by lot",
    "hardest": "the positive by lot, where none is named",
    "semi-hard": "the positive by lot",
}
few = settings(max_examples=25)


@st.composite
def comparisons(draw):
    random = torch.Generator().manual_seed(draw(st.integers(0, 2**32 - 1)))
    size = draw(st.integers(1, 9))
    groups = torch.randint(draw(st.integers(1, 4)), (size,), generator=random)
    x, r = (torch.randn(size, 3, generator=random) for _ in range(2))
    if draw(st.booleans()):
        r[-1] = r[0]
    relation = Comparison.of_labels if draw(st.booleans()) else Comparison.of_ids
    guides = {name: torch.rand(size, size, generator=random) for name in ("text", "audio")}
    return replace(relation(x, r, groups, groups), guides=guides)


@pytest.mark.parametrize("name", EVERY)
@few
@given(comparison=comparisons(), seed=st.integers(0, 2**32 - 1))
def test_only_narrows_so_that_items_of_the_same_clip_never_become_negatives(name, comparison, seed):
    kept = SELECTIONS[name](comparison, torch.Generator().manual_seed(seed))
    rows = [(comparison.anchors == anchor).all(1).nonzero()[0, 0] for anchor in kept.anchors]
    for row, positives, negatives in zip(rows, kept.positives, kept.negatives, strict=True):
        assert not (positives & ~comparison.positives[row]).any()
        assert not (negatives & ~comparison.negatives[row]).any()


@pytest.mark.parametrize("name", EVERY)
@few
@given(comparison=comparisons(), seed=st.integers(0, 2**32 - 1))
def test_the_same_seed_selects_the_same(name, comparison, seed):
    first, second = (SELECTIONS[name](comparison, torch.Generator().manual_seed(seed)) for _ in range(2))
    for field in ("anchors", "positives", "negatives"):
        assert torch.equal(getattr(first, field), getattr(second, field))


@pytest.mark.parametrize("name", EVERY)
@few
@given(comparison=comparisons())
def test_leaves_the_gradient_of_scores_alone(name, comparison):
    anchors = comparison.anchors.clone().requires_grad_()
    kept = SELECTIONS[name](replace(comparison, anchors=anchors), torch.Generator().manual_seed(0))
    assert not kept.positives.requires_grad
    kept.squared_distance.sum().backward()
    assert torch.isfinite(anchors.grad).all()


@pytest.mark.parametrize("name", EVERY)
def test_a_batch_of_one_class_or_of_nobody_is_no_error(name):
    for size in (0, 4):
        same = torch.zeros(size, dtype=torch.int64)
        guides = {side: torch.zeros(size, size) for side in ("text", "audio")}
        x = torch.randn(size, 2)
        comparison = replace(Comparison.of_labels(x, x, same, same), guides=guides)
        kept = SELECTIONS[name](comparison, torch.Generator())
        assert not kept.negatives.any()


@pytest.mark.parametrize("name", EVERY)
def test_every_option_is_documented(name):
    assert all(option.sentence for option in schema(SELECTIONS[name]).values())


@pytest.mark.parametrize("name", EVERY)
@few
@given(comparison=comparisons(), seed=st.integers(0, 2**32 - 1))
def test_draws_come_from_the_generator_alone(name, comparison, seed):
    torch.manual_seed(seed)
    expected = torch.rand(3)
    torch.manual_seed(seed)
    SELECTIONS[name](comparison, torch.Generator().manual_seed(1))
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("relation", [Comparison.of_labels, Comparison.of_ids])
def test_what_draws_nothing_selects_the_same_with_any_seed_and_what_draws_does_not(name, relation):
    groups, vectors = torch.arange(12) % 3, torch.randn(2, 12, 3, generator=torch.Generator().manual_seed(0))
    guides = {side: torch.rand(12, 12, generator=torch.Generator().manual_seed(1)) for side in ("text", "audio")}
    comparison = replace(relation(*vectors, groups, groups), guides=guides)
    kept = [SELECTIONS[name](comparison, torch.Generator().manual_seed(seed)) for seed in range(8)]
    same = all(
        torch.equal(getattr(one, field), getattr(kept[0], field))
        for one in kept
        for field in ("anchors", "positives", "negatives")
    )
    if name not in DRAWS:
        assert same
    elif relation is Comparison.of_labels:
        assert not same, "the exception is not needed any more"


def test_every_exception_names_a_selection():
    assert DRAWS.keys() <= SELECTIONS.keys()
