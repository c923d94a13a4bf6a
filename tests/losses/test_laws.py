"""What every loss must hold, present and future; the exceptions are named with their reason."""

import inspect
import tracemalloc
from dataclasses import fields, replace
from functools import partial
from typing import Literal, get_args, get_origin

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.checkpoint import checkpoint

from aadml.comparison import Comparison, Terms
from aadml.feature_extraction.ground import option_types
from aadml.feature_extraction.ground.options import schema
from aadml.losses import LOSSES, TRAINS_WITHOUT_NEGATIVES, WEIGHS_POSITIVES, daml, hdml
from aadml.losses.kernels.generated_negatives import Triples
from tests import option_leaves

EVERY = sorted(LOSSES)
DIMENSION, FEATURES, CLASSES = 4, 5, 5

JOINS_ANCHORS = {
    "dsl": "its prior is a softmax over the anchors",
    "hdml": "it weighs the batch by the batch's mean cost",
    "proxy-anchor": "its proxies sum over the anchors",
}
STOPS_GRADIENT: dict[str, str] = {}
"""Losses whose gradient is not that of their value, because they hold something fixed on purpose: name -> what."""

COSTS_WITHOUT_POSITIVES = {"contrastive": "a sum over pairs", "hinge": "a sum over pairs"}
COSTS_WITHOUT_POSITIVES |= {"multi-similarity": "positives and negatives have a sum each"}
COSTS_WITHOUT_NEGATIVES = COSTS_WITHOUT_POSITIVES | dict.fromkeys(
    TRAINS_WITHOUT_NEGATIVES, "positives compete with each other"
)

OF_CLASSES = {"proxy-nca", "proxy-anchor", "soft-triple", "arcface"}
"""Losses that an anchor's class is enough for: they look at no candidates and no masks, for which proxies stand."""


def every_positive(comparison, generator):
    """Every positive of every anchor with the anchor's nearest negative, instead of triples that are drawn."""
    usable = comparison.positives.any(1) & comparison.negatives.any(1)
    anchor, positive = (comparison.positives & usable[:, None]).nonzero(as_tuple=True)
    nearest = comparison.squared_distance.detach().masked_fill(~comparison.negatives, torch.inf).argmin(1)
    return Triples(anchor, positive, nearest[anchor])


@pytest.fixture(scope="module", autouse=True)
def without_draws():
    with pytest.MonkeyPatch.context() as patch:
        for module in (daml, hdml):
            patch.setattr(module, "draw_triples", every_positive)
        yield


def owns_parameters(name):
    return inspect.isclass(LOSSES[name]) and issubclass(LOSSES[name], nn.Module)


def built(name, **options):
    """A loss as it comes; those that own parameters are small and in float64, see `without_draws`."""
    loss = LOSSES[name]
    takes = inspect.signature(loss).parameters
    if not owns_parameters(name):
        return partial(loss, **{key: value for key, value in options.items() if key in takes})
    context = {"dimension": DIMENSION, "features": FEATURES, "classes": CLASSES, "hidden": 8}
    chosen = context | options
    torch.manual_seed(0)
    return loss(**{key: value for key, value in chosen.items() if key in takes}).double().eval()


def variants(name):
    """Options of a loss: none, and every other word of those that take one of several."""
    found = [{}]
    for option in schema(LOSSES[name]).values():
        for kind, metadata in option_leaves.leaves(option.kind):
            words = get_args(kind) if get_origin(kind) is Literal else ()
            words = next((one.names for one in metadata if isinstance(one, option_types.Choice)), words)
            found += [{option.name: word} for word in words if word != option.default]
    return found


def equipped(comparison, seed=0):
    """The comparison with every optional field a loss may ask for."""
    random = torch.Generator().manual_seed(seed)
    torch.manual_seed(0)
    a, c = comparison.positives.shape

    def rows(count):
        return torch.randn(count, FEATURES, generator=random, dtype=comparison.anchors.dtype)

    return replace(
        comparison,
        within=torch.zeros(a, c, dtype=torch.bool),
        shares=torch.rand(a, c, generator=random, dtype=comparison.anchors.dtype),
        anchor_features=rows(a),
        candidate_features=rows(c),
        candidate_head=nn.Linear(FEATURES, DIMENSION).to(comparison.anchors.dtype),
        anchor_class=torch.arange(a) % CLASSES,
        candidate_class=torch.arange(c) % CLASSES,
    )


def leaves(comparison):
    """The comparison with fresh leaves for vectors and features, and these leaves."""
    names = ("anchors", "candidates", "anchor_features", "candidate_features")
    fresh = {name: getattr(comparison, name).detach().clone().requires_grad_() for name in names}
    return replace(comparison, **fresh), list(fresh.values())


def at_columns(comparison, order):
    """The comparison with its candidates in another order."""
    place = torch.full((comparison.positives.shape[1],), -1)
    place[order] = torch.arange(len(order))
    changed = {name: getattr(comparison, name)[:, order] for name in ("positives", "negatives", "within", "shares")} | {
        name: getattr(comparison, name)[order] for name in ("candidates", "candidate_features", "candidate_class")
    }
    own = torch.where(comparison.own >= 0, place[comparison.own], -1)
    return replace(comparison, own=own, **changed)


def finite_gradients(terms, points):
    total = terms.total.sum() if terms.penalty is None else terms.total.sum() + terms.penalty
    gradients = torch.autograd.grad(total, points, allow_unused=True) if total.requires_grad else ()
    return torch.isfinite(total) and all(torch.isfinite(g).all() for g in gradients if g is not None)


few = settings(max_examples=20)
drawn = pytest.mark.parametrize("name", EVERY)
kinds = st.sampled_from(["labels", "ids", "masks"])
seeds = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize(("name", "options"), [(name, options) for name in EVERY for options in variants(name)])
@few
@given(kind=kinds, seed=seeds)
def test_a_total_is_no_less_than_zero_and_no_more_terms_are_active_than_possible(draw, name, options, kind, seed):
    terms = built(name, **options)(equipped(draw(kind, seed)))
    assert terms.total.shape == terms.active.shape == terms.possible.shape == (7,)
    assert (terms.total >= -1e-12).all()
    assert (terms.active <= terms.possible).all()
    assert ((terms.total > 1e-9) <= (terms.active > 0)).all()


@drawn
@few
@given(kind=kinds, seed=seeds)
def test_the_order_of_candidates_is_irrelevant(draw, name, kind, seed):
    comparison = equipped(draw(kind, seed))
    order = torch.randperm(7, generator=torch.Generator().manual_seed(seed))
    ours, other = (built(name)(c) for c in (comparison, at_columns(comparison, order)))
    assert torch.allclose(ours.total, other.total, rtol=1e-9, atol=1e-9)
    assert torch.equal(ours.active, other.active)


@drawn
@few
@given(kind=kinds, seed=seeds)
def test_anchors_split_in_two_cost_the_same(draw, name, kind, seed):
    if name in JOINS_ANCHORS:
        return
    comparison = equipped(draw(kind, seed))
    whole = built(name)(comparison)
    parts = [built(name)(comparison.narrow(rows=rows)) for rows in (torch.arange(3), torch.arange(3, 7))]
    for field in ("total", "active", "possible"):
        joined = torch.cat([getattr(part, field) for part in parts])
        assert torch.allclose(joined.double(), getattr(whole, field).double(), rtol=1e-9, atol=1e-9), field


@drawn
@few
@given(seed=seeds)
def test_candidates_in_neither_mask_change_nothing(draw, name, seed):
    if name in JOINS_ANCHORS:
        return
    comparison = equipped(draw("masks", seed))
    ignored = ~(comparison.positives | comparison.negatives).any(0)
    kept = at_columns(comparison, (~ignored).nonzero()[:, 0])
    far_off = replace(comparison, candidates=comparison.candidates + 1e3 * ignored[:, None])
    for other in (kept, far_off):
        assert torch.allclose(built(name)(comparison).total, built(name)(other).total, rtol=1e-9, atol=1e-9)


@drawn
@few
@given(seed=seeds, lacking=st.sampled_from(["positives", "negatives", "both"]))
def test_an_anchor_without_positives_or_negatives_costs_nothing(draw, name, seed, lacking):
    exempt = {"positives": COSTS_WITHOUT_POSITIVES, "negatives": COSTS_WITHOUT_NEGATIVES, "both": ()}
    if name in exempt[lacking] or name in OF_CLASSES:
        return
    comparison = equipped(draw("labels", seed))
    lonely = {side: getattr(comparison, side).clone() for side in ("positives", "negatives")}
    for side in lonely if lacking == "both" else [lacking]:
        lonely[side][2] = False
    comparison, points = leaves(replace(comparison, **lonely))
    terms = built(name)(comparison)
    assert terms.total[2] == 0
    assert terms.active[2] == terms.possible[2] == 0
    if terms.total.requires_grad and name not in JOINS_ANCHORS:
        gradient = torch.autograd.grad(terms.total.sum(), points, allow_unused=True)[0]
        assert gradient is None or not gradient[2].any()


@drawn
def test_a_label_relation_of_unique_labels_is_an_id_relation(draw, name):
    pairs = draw("ids", 1)
    unique = torch.arange(7)
    sides = [
        equipped(relation(pairs.anchors, pairs.candidates, unique, unique))
        for relation in (Comparison.of_labels, Comparison.of_ids)
    ]
    by_label, by_id = (built(name)(side) for side in sides)
    assert torch.equal(by_label.total, by_id.total)


def gradients_match(loss, comparison):
    """Whether the gradients of a loss are those of its values."""

    def totals(anchors, candidates):
        terms = loss(replace(comparison, anchors=anchors, candidates=candidates))
        return terms.total if terms.penalty is None else terms.total + terms.penalty

    points = tuple(p.detach().clone().requires_grad_() for p in (comparison.anchors, comparison.candidates))
    return torch.autograd.gradcheck(totals, points, raise_exception=False)


@drawn
@pytest.mark.parametrize("kind", ["labels", "ids", "masks"])
def test_gradients_match_finite_differences(draw, name, kind):
    comparison = equipped(draw(kind, 6, anchors=4, candidates=5) if kind != "ids" else draw(kind, 6, 4, 4))
    assert gradients_match(built(name), comparison) or name in STOPS_GRADIENT


@drawn
@pytest.mark.parametrize("kept", [None, "cosine", "distance"])
def test_a_second_derivative_is_right_or_an_error(draw, name, kept):
    """A penalty on the gradient of a layer before the loss needs the second derivative.

    A selection may have computed scores with torch's own functions, whose second derivatives are not refused.
    """
    comparison = equipped(draw("labels", 3))
    loss = built(name)
    weight = torch.eye(comparison.anchors.shape[1], dtype=torch.float64, requires_grad=True)

    def penalty(weight):
        sides = comparison.anchors @ weight, comparison.candidates if kept else comparison.candidates @ weight
        projected = comparison.with_vectors(*sides)
        if kept:
            getattr(projected, kept)
        total = loss(projected).total.sum()
        return torch.autograd.grad(total, weight, create_graph=True)[0].square().sum()

    value, slope, refusal = penalty(weight) + 0 * weight.sum(), None, ""  # the penalty may be constant
    try:
        (slope,) = torch.autograd.grad(value, weight)
    except RuntimeError as error:
        refusal = str(error)
    if slope is None:
        assert "no second derivative" in refusal
        return
    step = torch.randn_like(weight) * 1e-5
    beside = [penalty((weight + way * step).detach().requires_grad_()).item() for way in (-1, 1)]
    assert (slope * step).sum().item() == pytest.approx((beside[1] - beside[0]) / 2, rel=1e-3, abs=1e-12)


@drawn
def test_a_loss_inside_a_checkpoint_has_the_same_gradients(draw, name):
    comparison, points = leaves(equipped(draw("labels", 3)))
    loss = built(name)

    def total(anchors, candidates):
        return loss(comparison.with_vectors(anchors, candidates)).total.sum()

    totals = total(*points[:2]), checkpoint(total, *points[:2], use_reentrant=False)
    gradients = [torch.autograd.grad(value, points[:2], allow_unused=True) for value in totals]
    for ours, recomputed in zip(*gradients, strict=True):
        assert ours is recomputed is None or torch.equal(ours, recomputed)


def stopped(comparison):
    """A loss that holds its own weights fixed."""
    total = (comparison.squared_distance * comparison.squared_distance.detach()).sum(1)
    return Terms(total, torch.ones(len(total)), torch.ones(len(total)))


@pytest.mark.parametrize("name", ["one that stops its gradient", *sorted(STOPS_GRADIENT)])
def test_a_stopped_gradient_is_seen_and_still_pulls(draw, name):
    loss = built(name) if name in STOPS_GRADIENT else stopped
    comparison, points = leaves(equipped(draw("labels", 6)))
    assert not gradients_match(loss, comparison), "the exception is not needed any more"
    terms = loss(comparison)
    total = terms.total.sum() if terms.penalty is None else terms.total.sum() + terms.penalty
    reached = [one for one in torch.autograd.grad(total, points, allow_unused=True) if one is not None]
    assert all(torch.isfinite(one).all() for one in reached)
    assert any(one.any() for one in reached)


HARD_CASES = {
    "no positives": lambda c: replace(c, positives=torch.zeros_like(c.positives)),
    "no negatives": lambda c: replace(c, negatives=torch.zeros_like(c.negatives)),
    "one class": lambda c: replace(
        c, positives=~torch.zeros_like(c.positives), negatives=torch.zeros_like(c.negatives)
    ),
    "nothing at all": lambda c: replace(
        c, positives=torch.zeros_like(c.positives), negatives=torch.zeros_like(c.negatives)
    ),
    "duplicates": lambda c: replace(c, anchors=c.anchors[:1].expand(7, -1), candidates=c.anchors[:1].expand(7, -1)),
    "zero vectors": lambda c: replace(c, anchors=c.anchors * 0, candidates=c.candidates * 0),
    "long vectors": lambda c: replace(c, anchors=c.anchors * 100, candidates=c.candidates * 100),
    "ordinary": lambda c: c,
}


@drawn
@pytest.mark.parametrize("case", HARD_CASES)
@pytest.mark.parametrize("reduced", [torch.bfloat16, torch.float16, None])
def test_loss_and_gradients_stay_finite(draw, name, case, reduced):
    comparison = HARD_CASES[case](draw("labels", 3))
    halved = {} if reduced is None else {"dtype": reduced}
    vectors = {side: getattr(comparison, side).to(reduced or torch.float32) for side in ("anchors", "candidates")}
    comparison, points = leaves(equipped(replace(comparison, **vectors)))
    if reduced is not None:
        comparison = replace(comparison, candidate_head=comparison.candidate_head.float())
    loss = built(name)
    loss = loss.float() if isinstance(loss, nn.Module) else loss
    with torch.autocast("cpu", enabled=reduced is not None, **halved):
        terms = loss(comparison)
    assert finite_gradients(terms, points)


@drawn
@pytest.mark.parametrize("reduced", [torch.bfloat16, torch.float16])
def test_autocast_changes_no_total(draw, name, reduced):
    if owns_parameters(name):
        pytest.skip("its networks may run in reduced precision")
    comparison = equipped(draw("labels", 4))
    comparison = replace(comparison, anchors=comparison.anchors.float(), candidates=comparison.candidates.float())
    outside = built(name)(comparison)
    with torch.autocast("cpu", dtype=reduced):
        inside = built(name)(replace(comparison))
    assert torch.equal(inside.total, outside.total)


class Largest(TorchDispatchMode):
    """Remembers the most entries any tensor had that was made."""

    def __init__(self):
        super().__init__()
        self.entries = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        sizes = [
            t.untyped_storage().nbytes() // t.element_size() for t in tree_leaves(made) if isinstance(t, torch.Tensor)
        ]
        self.entries = max([self.entries, *sizes])
        return made


@drawn
def test_nothing_of_the_size_of_all_triplets_is_ever_made(name):
    size = 192
    labels = torch.arange(size) % CLASSES
    x, r = (torch.randn(size, DIMENSION) for _ in range(2))
    comparison, points = leaves(equipped(Comparison.of_labels(x, r, labels, labels)))
    loss = built(name, positives="one", negatives="random")
    loss = loss.float() if owns_parameters(name) else loss
    with Largest() as largest:
        torch.autograd.grad(loss(comparison).total.sum(), points, allow_unused=True)
    tracemalloc.start()
    loss(replace(comparison))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert largest.entries <= 4 * size**2
    assert peak <= 100 * size**2  # bytes of NumPy's arrays: a bool a triplet would be 192 times size**2


def test_no_optional_field_of_a_comparison_is_left_out_of_these_laws():
    complete = equipped(Comparison.of_ids(torch.ones(2, 4), torch.ones(2, 4), torch.arange(2), torch.arange(2)))
    absent = [field.name for field in fields(complete) if getattr(complete, field.name) is None]
    assert absent == ["relevance", "shared"]  # shared products: tests of the objective


def test_every_exception_names_a_loss():
    assert (JOINS_ANCHORS | COSTS_WITHOUT_NEGATIVES | STOPS_GRADIENT).keys() | OF_CLASSES <= LOSSES.keys()


@drawn
@few
@given(kind=kinds, seed=seeds, constant=st.floats(0.01, 100))
def test_equal_shares_are_no_shares_and_others_count_where_the_table_says_so(draw, name, kind, seed, constant):
    comparison = equipped(draw(kind, seed))
    plain, equal = (replace(comparison, shares=s) for s in (None, torch.full_like(comparison.shares, constant)))
    options = {"multi_positive": True} if name == "n-pair" else {}
    alike = built(name, **options)(plain)
    torch.testing.assert_close(built(name, **options)(equal).total, alike.total, rtol=1e-9, atol=1e-9)
    if name not in WEIGHS_POSITIVES:
        assert torch.equal(built(name, **options)(comparison).total, alike.total)


@pytest.mark.parametrize("name", WEIGHS_POSITIVES)
def test_what_a_positive_counts_changes_the_cost(name):
    random = torch.Generator().manual_seed(0)
    anchors, candidates = (torch.randn(n, DIMENSION, generator=random, dtype=torch.float64) for n in (3, 6))
    given = equipped(Comparison.of_labels(anchors, candidates, torch.arange(3), torch.arange(6) % 3))
    options = {"multi_positive": True} if name == "n-pair" else {}
    uneven = given.shares.clone()
    uneven[0, 3] += 5
    costs = [built(name, **options)(replace(given, shares=one)).total for one in (given.shares, uneven)]
    assert float(costs[0][0]) != pytest.approx(float(costs[1][0]))
    torch.testing.assert_close(costs[0][1:], costs[1][1:])
