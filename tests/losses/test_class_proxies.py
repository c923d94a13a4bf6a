"""The losses that own proxies of classes: proxy-nca, proxy-anchor, soft-triple, arcface."""

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pytorch_metric_learning import losses
from torch.nn import functional as F

from aadml.comparison import Comparison
from aadml.feature_extraction.ground.errors import InputError
from aadml.losses import LOSSES
from aadml.objective import Embedded
from aadml.objective.composition import Space, compose_objective
from aadml.objective.recipes import RECIPES
from tests.sections import typed

CLASSES, DIMENSION = 4, 3
EVERY = ("proxy-nca", "proxy-anchor", "soft-triple", "arcface")
every = pytest.mark.parametrize("name", EVERY)
seeds = st.integers(0, 2**32 - 1)


def built(name, **options):
    torch.manual_seed(0)
    return LOSSES[name](dimension=DIMENSION, classes=CLASSES, **options).double()


def batch(seed, count=7):
    random = torch.Generator().manual_seed(seed)
    x = torch.randn(count, DIMENSION, generator=random, dtype=torch.float64)
    labels = torch.randint(CLASSES, (count,), generator=random)
    return Comparison.of_labels(x, x, labels, labels, itself=torch.arange(count))


def cosine(x, p):
    return float(x @ p / (x.norm() * p.norm()))


def proxy_nca(comparison, loss):
    totals = []
    for x, y in zip(comparison.anchors, comparison.anchor_class.tolist(), strict=True):
        d = [float((x / x.norm() - p / p.norm()).square().sum()) / loss.temperature for p in loss.proxies.detach()]
        totals.append(d[y] + math.log(sum(math.exp(-one) for one in d)))
    return totals


def proxy_anchor(comparison, loss):
    pulled, pushed, there = 0.0, 0.0, 0
    for c, p in enumerate(loss.proxies.detach()):
        own, others = 0.0, 0.0
        for x, y in zip(comparison.anchors, comparison.anchor_class.tolist(), strict=True):
            if y == c:
                own += math.exp(-loss.alpha * (cosine(x, p) - loss.margin))
            else:
                others += math.exp(loss.alpha * (cosine(x, p) + loss.margin))
        there += own > 0
        pulled, pushed = pulled + math.log1p(own), pushed + math.log1p(others)
    return [pulled / there + pushed / CLASSES] * len(comparison.anchors)


def soft_triple(comparison, loss):
    centers, totals = loss.proxies.detach().view(CLASSES, loss.centers, DIMENSION), []
    for x, y in zip(comparison.anchors, comparison.anchor_class.tolist(), strict=True):
        z = []
        for c in range(CLASSES):
            s = [cosine(x, center) for center in centers[c]]
            weights = [math.exp(one / 0.1) for one in s]
            relaxed = sum(w * one for w, one in zip(weights, s, strict=True)) / sum(weights)
            z.append(loss.scale * (relaxed - (loss.margin if c == y else 0)))
        totals.append(math.log(sum(math.exp(one) for one in z)) - z[y])
    return totals


def arcface(comparison, loss):
    totals = []
    for x, y in zip(comparison.anchors, comparison.anchor_class.tolist(), strict=True):
        angles = [math.acos(cosine(x, p)) for p in loss.proxies.detach()]
        wide = angles[y] + loss.margin
        own = math.cos(wide) if wide <= math.pi else math.cos(angles[y]) - loss.margin * math.sin(loss.margin)
        z = [loss.scale * (own if c == y else math.cos(angle)) for c, angle in enumerate(angles)]
        totals.append(math.log(sum(math.exp(one - max(z)) for one in z)) + max(z) - z[y])
    return totals


DEFINITIONS = {"proxy-nca": proxy_nca, "proxy-anchor": proxy_anchor, "soft-triple": soft_triple, "arcface": arcface}
OPTIONS = {
    "proxy-nca": {"temperature": 0.3},
    "proxy-anchor": {"margin": 0.2, "alpha": 5.0},
    "soft-triple": {"centers": 3, "scale": 7.0, "margin": 0.2},
    "arcface": {"margin": 80.0, "scale": 5.0},
}


@every
@settings(max_examples=8)
@given(seed=seeds)
def test_is_its_definition(name, seed):
    for options in ({}, OPTIONS[name]):
        loss, comparison = built(name, **options), batch(seed)
        expected = torch.tensor(DEFINITIONS[name](comparison, loss), dtype=torch.float64)
        assert torch.allclose(loss(comparison).total, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("proxy-nca", {}, math.log(1 + 3 * math.exp(-2))),
        ("proxy-anchor", {"margin": 0.0, "alpha": 1.0}, math.log1p(math.exp(-1)) + 3 / 4 * math.log(2)),
        ("soft-triple", {"centers": 1, "margin": 0.0, "scale": 1.0}, math.log(1 + 3 * math.exp(-1))),
        ("arcface", {"margin": 60.0, "scale": 2.0}, math.log(1 + 3 * math.exp(-1))),
    ],
)
def test_of_one_item_on_its_own_proxy_and_square_to_the_others(name, options, expected):
    loss = LOSSES[name](dimension=4, classes=4, **options).double()
    loss.proxies.data = 7 * torch.eye(4, dtype=torch.float64)
    item = Comparison.of_labels(torch.eye(4)[2:3].double(), torch.eye(4).double(), torch.tensor([2]), torch.arange(4))
    assert loss(item).total.item() == pytest.approx(expected, abs=1e-5)


def test_the_penalty_of_soft_triple_is_the_mean_distance_between_the_centers_of_a_class():
    loss = built("soft-triple", centers=3, merge=0.5)
    centers, total = F.normalize(loss.proxies.detach(), dim=1).view(CLASSES, 3, DIMENSION), 0.0
    for own in centers:
        total += sum(float((own[k] - own[other]).norm()) for k in range(3) for other in range(k + 1, 3))
    assert loss(batch(0)).penalty.item() == pytest.approx(0.5 * total / (CLASSES * 3 * 2))
    assert built("soft-triple", centers=1)(batch(0)).penalty.item() == 0
    assert built("soft-triple", merge=0.0)(batch(0)).penalty is None


def test_the_penalty_of_soft_triple_is_finite_where_centers_coincide():
    loss = built("soft-triple", centers=2)
    loss.proxies.data = torch.ones_like(loss.proxies)
    loss(batch(0)).penalty.backward()
    assert torch.isfinite(loss.proxies.grad).all()


def test_arcface_costs_more_the_farther_an_item_turns_away_past_the_kink_too():
    loss = LOSSES["arcface"](dimension=3, classes=2, scale=1.0).double()
    loss.proxies.data = torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]], dtype=torch.float64)
    angle = torch.linspace(0, math.pi, 50, dtype=torch.float64)
    x = torch.stack([angle.cos(), angle.sin(), torch.zeros(50, dtype=torch.float64)], 1)
    labels = torch.zeros(50, dtype=torch.int64)
    assert (loss(Comparison.of_labels(x, x, labels, labels)).total.diff() > 0).all()


@every
def test_is_the_peers_loss(name):
    loss, comparison = built(name, **({"merge": 0.0} if name == "soft-triple" else {})), batch(3)
    peer = {
        "proxy-nca": lambda: losses.ProxyNCALoss(CLASSES, DIMENSION, softmax_scale=1),
        "proxy-anchor": lambda: losses.ProxyAnchorLoss(CLASSES, DIMENSION),
        "soft-triple": lambda: losses.SoftTripleLoss(CLASSES, DIMENSION),
        "arcface": lambda: losses.ArcFaceLoss(CLASSES, DIMENSION),
    }[name]().double()
    for parameter in peer.parameters():
        parameter.data = loss.proxies.data if parameter.shape == loss.proxies.shape else loss.proxies.data.T
    expected = peer(comparison.anchors, comparison.anchor_class)
    assert loss(comparison).total.mean().item() == pytest.approx(expected.item())


@every
def test_the_gradients_of_the_proxies_are_those_of_finite_differences(name):
    loss, comparison = built(name), batch(5, count=4)
    loss.proxies.data *= 1 if name == "arcface" else 100

    def totals(proxies):
        terms = torch.func.functional_call(loss, {"proxies": proxies}, (comparison,))
        return terms.total if terms.penalty is None else terms.total + terms.penalty

    assert torch.autograd.gradcheck(totals, (loss.proxies.detach().clone().requires_grad_(),))


@every
def test_proxies_begin_at_their_length_in_any_direction(name):
    torch.manual_seed(1)
    length, loss = 1.0 if name == "arcface" else 0.01, LOSSES[name](dimension=200, classes=60)
    assert loss.proxies.norm(dim=1).mean().item() == pytest.approx(length, rel=0.02)
    assert loss.proxies.mean().abs().item() < 0.02 * length


@every
def test_an_item_costs_without_any_candidate(name):
    loss, comparison = built(name), batch(2)
    nothing = torch.zeros(7, 0, dtype=torch.bool)
    alone = replace(comparison, candidates=comparison.candidates[:0], positives=nothing, negatives=nothing)
    assert torch.equal(loss(alone).total, loss(comparison).total)
    assert loss(alone).possible.tolist() == [1] * 7
    nobody = comparison.narrow(rows=torch.arange(0))
    assert loss(nobody).total.shape == (0,)


@every
def test_refuses_what_it_has_no_proxies_for(name):
    with pytest.raises(
        InputError, match=f"{name} learns proxies of the classes, but the method or the data have no classes"
    ):
        LOSSES[name](dimension=3, classes=0)
    loss, comparison = built(name), batch(0)
    with pytest.raises(InputError, match="for the classes 0 to 3, but the clips have classes 9 to 9"):
        loss(replace(comparison, anchor_class=torch.full((7,), 9)))
    with pytest.raises(InputError, match="have classes -1 to -1"):
        loss(replace(comparison, anchor_class=torch.full((7,), -1)))
    with pytest.raises(InputError, match="vectors of width 3, but vectors of width 2 were passed"):
        loss(replace(comparison, anchors=comparison.anchors[:, :2]))
    with pytest.raises(InputError, match="'anchor_class'"):
        loss(replace(comparison, anchor_class=None))


@every
@pytest.mark.parametrize("directions", [("both-both",), ("audio-visual", "visual-audio")])
def test_both_modalities_meet_the_same_proxies(name, directions):
    objective = compose_objective(
        Space(("audio", "visual"), DIMENSION, classes=CLASSES), **typed(loss=RECIPES[name].loss), directions=directions
    )
    assert len({id(loss) for loss in objective.losses}) == 1
    assert len(list(objective.parameters())) == 1
    labels = torch.arange(8) % CLASSES
    x = {m: torch.randn(8, DIMENSION, requires_grad=True) for m in ("audio", "visual")}
    objective(Embedded(x, labels, torch.arange(8)), torch.Generator())["loss"].backward()
    assert all(values.grad.any() for values in x.values())
    assert objective.losses[0].proxies.grad.any()


@every
def test_the_recipe_compares_both_modalities_at_once(name):
    assert RECIPES[name].directions == ("both-both",)
    assert RECIPES[name].loss == {"name": name, "reduction": "mean"}
