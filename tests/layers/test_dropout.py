"""Dropout with cheap masks: what it drops, what it keeps, and that it draws from the process-wide generator alone."""

import math
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from aadml.layers import dropout
from aadml.layers.dropout import LEVELS, DropoutLayer

COUNT = 200_000


def dropped(share, *shape, seed=0):
    torch.manual_seed(seed)
    return DropoutLayer(share).train()(torch.ones(*shape))


@pytest.mark.parametrize("share", [0.001, 0.1, 0.5, 0.9, 0.999])
def test_drops_its_share_and_scales_up_the_others(share):
    seen = dropped(share, COUNT)
    zeros = int((seen == 0).sum())
    assert abs(zeros - share * COUNT) < 6 * math.sqrt(COUNT * share * (1 - share)) + COUNT / LEVELS
    scales = seen[seen != 0].unique()
    assert len(scales) == 1
    rounded = round(share * LEVELS) / LEVELS
    assert scales.item() == pytest.approx(1 / (1 - rounded), rel=1e-6)


@given(st.floats(0, 1, exclude_max=True), st.sampled_from([(0,), (1,), (3,), (7, 3), (2, 3, 5)]))
def test_any_share_and_shape_stays_finite_and_of_its_shape(share, shape):
    seen = dropped(share, *shape)
    assert seen.shape == shape
    assert torch.isfinite(seen).all()


def test_units_are_dropped_independently_of_their_neighbors_and_of_the_last_mask():
    torch.manual_seed(0)
    layer = DropoutLayer(0.3).train()
    first, second = (layer(torch.ones(COUNT)) == 0 for _ in range(2))
    spread = math.sqrt(0.09 * 0.91 / COUNT)
    for other in (second, first.roll(1), first.roll(2), first.roll(4)):
        assert abs(float((first & other).float().mean()) - 0.09) < 6 * spread


def test_the_gradient_passes_where_the_value_passed():
    torch.manual_seed(0)
    values = torch.ones(50, 40, requires_grad=True)
    seen = DropoutLayer(0.4).train()(values)
    seen.sum().backward()
    assert torch.equal(values.grad, seen.detach())


def test_evaluation_and_a_share_of_nothing_change_nothing_and_draw_nothing():
    values = torch.randn(5, 3)
    torch.manual_seed(1)
    expected = torch.rand(2)
    torch.manual_seed(1)
    assert DropoutLayer(0.5).eval()(values) is values
    assert DropoutLayer(0.0).train()(values) is values
    assert torch.equal(torch.rand(2), expected)


def test_a_compiler_is_given_the_dropout_of_torch(monkeypatch):
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    values, masks = torch.randn(200, 30), []
    for drop in (DropoutLayer(0.3).train(), lambda one: torch.nn.functional.dropout(one, 0.3)):
        torch.manual_seed(4)
        masks.append(drop(values))
    assert torch.equal(*masks)
    assert "0.3" in repr(DropoutLayer(0.3))


@pytest.mark.parametrize("count", [2, 3])
def test_processes_that_divide_a_batch_drop_what_one_drops(monkeypatch, count):
    whole, parts = dropped(0.4, 11, 6), []
    bounds = [11 * number // count for number in range(count + 1)]
    for start, stop in pairwise(bounds):
        monkeypatch.setattr(dropout.group, "drawn_rows", lambda rows, own=slice(start, stop): (11, own))
        parts.append(dropped(0.4, stop - start, 6))
    assert torch.equal(torch.cat(parts), whole)


def test_same_seed_same_mask_whatever_the_number_of_threads():
    threads, masks = torch.get_num_threads(), []
    try:
        for count in (1, 2):
            torch.set_num_threads(count)
            masks.append(dropped(0.2, 300, 1024))
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(*masks)
    assert not torch.equal(masks[0], dropped(0.2, 300, 1024, seed=1))
