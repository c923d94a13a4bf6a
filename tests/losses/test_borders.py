"""What every loss does where there is nothing to compare, and where a compiler asks."""

import pytest
import torch

from tests.losses.test_laws import EVERY, OF_CLASSES, at_columns, built, equipped, finite_gradients, leaves, variants

CHOOSES_CANDIDATES = {"angular", "daml", "hdml"}
"""Losses that choose a candidate for each anchor, so there must be one."""


@pytest.mark.parametrize(("name", "options"), [(name, options) for name in EVERY for options in variants(name)])
def test_without_candidates_nothing_is_compared(draw, name, options):
    if name in OF_CLASSES | CHOOSES_CANDIDATES:
        return
    comparison, points = leaves(at_columns(equipped(draw("labels", 0)), torch.arange(0)))
    terms = built(name, **options)(comparison)
    assert terms.total.shape == terms.active.shape == terms.possible.shape == (7,)
    assert not terms.total.any()
    assert not terms.active.any()
    assert not terms.possible.any()
    assert finite_gradients(terms, points)


@pytest.mark.parametrize(("name", "options"), [(name, options) for name in EVERY for options in variants(name)])
@pytest.mark.parametrize("kind", ["labels", "masks"])
def test_without_anchors_nothing_is_compared(draw, name, options, kind):
    comparison, points = leaves(equipped(draw(kind, 0)).narrow(rows=torch.arange(0)))
    terms = built(name, **options)(comparison)
    assert terms.total.shape == terms.active.shape == terms.possible.shape == (0,)
    total = terms.total.sum()
    gradients = torch.autograd.grad(total, points, allow_unused=True) if total.requires_grad else ()
    assert not any(gradient is not None and gradient.any() for gradient in gradients)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("kind", ["labels", "masks"])
def test_what_a_compiler_is_given_costs_the_same_and_has_the_same_gradients(draw, monkeypatch, name, kind):
    found = []
    for compiling in (False, True):
        monkeypatch.setattr(torch.compiler, "is_compiling", lambda compiling=compiling: compiling)
        comparison, points = leaves(equipped(draw(kind, 3)))
        terms = built(name)(comparison)
        gradients = torch.autograd.grad(terms.total.sum(), points, allow_unused=True)
        found.append([terms.total, terms.active, terms.possible, *gradients])
        assert not terms.active.is_floating_point()
        assert not terms.possible.is_floating_point()
    for one, other in zip(*found, strict=True):
        assert (one is None or not one.any()) if other is None else torch.allclose(one, other, rtol=1e-9, atol=1e-12)
