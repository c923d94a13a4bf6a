from dataclasses import replace

import pytest
import torch
from torch import nn

from aadml.comparison import Comparison
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.options import OptionValues, idle
from aadml.feature_extraction.ground.validation import checked_options
from aadml.losses.daml import Daml
from aadml.losses.kernels.generated_negatives import GenerativeLoss, draw_triples, triple_cost

FORMS = pytest.mark.parametrize("form", ["triplet", "contrastive", "n-pair"])


class Setting:
    """Two encoders of eight clips in two classes, in float64."""

    def __init__(self, labels=None, seed=0):
        torch.manual_seed(seed)
        self.labels = torch.arange(8) % 2 if labels is None else labels
        self.inputs = [torch.randn(len(self.labels), 6, dtype=torch.float64) for _ in range(2)]
        self.bodies = nn.ModuleList(nn.Linear(6, 5).double() for _ in range(2))
        self.heads = nn.ModuleList(nn.Linear(5, 3).double() for _ in range(2))
        self.encoders = [*self.bodies.parameters(), *self.heads.parameters()]

    def comparison(self):
        features = [body(x).tanh() for body, x in zip(self.bodies, self.inputs, strict=True)]
        anchors, candidates = (head(f) for head, f in zip(self.heads, features, strict=True))
        plain = Comparison.of_labels(anchors, candidates, self.labels, self.labels)
        return replace(plain, anchor_features=features[0], candidate_features=features[1], candidate_head=self.heads[1])


def daml(**options):
    torch.manual_seed(1)
    return Daml(features=5, hidden=16, **options).double()


def triples_of(loss, comparison):
    generator = torch.Generator().manual_seed(int(loss.draws))
    return draw_triples(comparison, generator)


def made_up(loss, comparison, triples):
    features = (
        comparison.anchor_features[triples.anchor],
        *(comparison.candidate_features[rows] for rows in (triples.positive, triples.negative)),
    )
    return features, loss.generator(torch.cat(features, 1))


@FORMS
def test_the_encoders_pay_for_negatives_that_the_generator_made_up(form):
    setting, loss = Setting(), daml(form=form).eval()
    comparison = setting.comparison()
    triples = triples_of(loss, comparison)
    terms = loss(comparison)
    negatives = setting.heads[1](made_up(loss, comparison, triples)[1])
    expected = torch.zeros(8, dtype=torch.float64)
    for k, anchor in enumerate(triples.anchor.tolist()):
        a, p = comparison.anchors[anchor], comparison.candidates[triples.positive[k]]
        rivals = comparison.negatives[anchor][triples.negative]
        cost = triple_cost(form, a[None], p[None], negatives[k][None], torch.ones(1, 1, dtype=torch.bool), 1.0)
        if form == "n-pair":
            cost = torch.log1p((negatives[rivals] @ a - a @ p).exp().sum())
        expected[anchor] += cost.item()
    assert torch.allclose(terms.total, expected, atol=1e-9)
    assert int(terms.possible.sum()) == len(triples.anchor)


@FORMS
def test_the_generator_pays_for_distance_and_for_negatives_that_are_not_hard(form):
    setting, loss = Setting(), daml(form=form, margin=0.1).eval()
    for parameter in loss.generator.parameters():
        parameter.data *= 3  # what it makes is far from everything
    comparison = setting.comparison()
    triples = triples_of(loss, comparison)
    (near, _, far), made = made_up(loss, comparison, triples)
    expected, soft_ones = 0.0, 0
    for k in range(len(made)):
        a, p = comparison.anchors[triples.anchor[k]], comparison.candidates[triples.positive[k]]
        x = setting.heads[1](made[k])
        soft = {
            "triplet": (x - a).square().sum() - (p - a).square().sum() - 0.1,
            "contrastive": (x - a).square().sum() - 0.1**2,
            "n-pair": a @ p - a @ x - 0.1,
        }[form]
        distances = (made[k] - near[k]).square().sum() + (made[k] - far[k]).square().sum()
        expected += float(distances.detach()) + 50 * max(0.0, float(soft.detach()))
        soft_ones += float(soft.detach()) > 0
    assert soft_ones
    assert loss.generator_loss(comparison).item() == pytest.approx(expected / len(made), rel=1e-9)


@FORMS
def test_the_margin_acts_in_every_form(form):
    assert not idle(Daml, OptionValues(form=form, margin=0.5), "loss")


@FORMS
def test_neither_players_gradient_reaches_the_other(form):
    setting, loss = Setting(), daml(form=form)
    loss(setting.comparison()).total.sum().backward()
    assert all(parameter.grad is None for parameter in loss.parameters())
    assert all(parameter.grad.abs().sum() > 0 for parameter in setting.encoders)
    for parameter in setting.encoders:
        parameter.grad = None
    loss.generator_loss(setting.comparison()).backward()
    assert all(parameter.grad is None for parameter in setting.encoders)
    assert all(parameter.grad is not None for parameter in loss.parameters())


def test_before_the_joint_phase_negatives_are_real():
    setting, loss = Setting(), daml().eval()
    comparison = setting.comparison()
    loss.enter("metric")
    triples = triples_of(loss, comparison)
    a, p, n = (
        comparison.anchors[triples.anchor],
        comparison.candidates[triples.positive],
        comparison.candidates[triples.negative],
    )
    assert torch.allclose(loss(comparison).total, ((a - p).square().sum(1) - (a - n).square().sum(1) + 1).clamp_min(0))
    loss.enter("joint")
    assert not torch.allclose(loss(comparison).total, triple_cost("triplet", a, p, n, torch.empty(0), 1.0))


def test_phases_are_encoders_then_generator_then_both():
    phases = Daml(features=2, hidden=2).phases(100)
    assert [(phase.name, phase.epochs, phase.players) for phase in phases] == [
        ("metric", 20, ("encoders",)),
        ("generator", 10, ("generator",)),
        ("joint", 70, ("encoders", "generator")),
    ]
    assert isinstance(daml(), GenerativeLoss)


def test_the_generator_learns_to_make_negatives_that_are_hard():
    setting, loss = Setting(), daml()
    optimizer = torch.optim.Adam(loss.parameters(), 1e-2)
    comparison = setting.comparison()
    triples = triples_of(loss, comparison)
    between = comparison.anchor_features[triples.anchor] - comparison.candidate_features[triples.negative]
    least = 0.5 * between.square().sum(1).mean().item()
    excess = []
    for _ in range(60):
        optimizer.zero_grad()
        cost = loss.generator_loss(setting.comparison())
        cost.backward()
        optimizer.step()
        excess.append(cost.item() - least)
    assert 0 <= excess[-1] < 0.2 * excess[0]


def test_every_training_call_draws_anew_and_a_restored_state_draws_the_same():
    setting, loss = Setting(labels=torch.arange(40) % 4), daml()
    first = [loss(setting.comparison()).total for _ in range(3)]
    again = daml()
    assert torch.equal(again(setting.comparison()).total, first[0])
    assert not torch.equal(first[0], first[1])
    restored = daml()
    restored.load_state_dict(again.state_dict())
    assert torch.equal(restored(setting.comparison()).total, first[1])


def test_costs_nothing_where_there_are_no_triples():
    for labels in (torch.zeros(4), torch.zeros(0)):
        setting, loss = Setting(labels=labels), daml(form="n-pair")
        terms = loss(setting.comparison())
        (terms.total.sum() + terms.penalty + loss.generator_loss(setting.comparison())).backward()
        assert terms.total.sum() == 0
        assert loss.generator_loss(setting.comparison()) == 0
        assert all(torch.isfinite(parameter.grad).all() for parameter in setting.encoders)


def test_works_for_paired_ids():
    setting = Setting()
    features = setting.comparison()
    clips = torch.arange(8) // 2
    pairs = Comparison.of_ids(features.anchors, features.candidates, clips, clips)
    pairs = replace(
        pairs,
        anchor_features=features.anchor_features,
        candidate_features=features.candidate_features,
        candidate_head=features.candidate_head,
    )
    terms = daml()(pairs)
    assert terms.possible.tolist() == [1] * 8
    assert torch.isfinite(terms.total).all()


@pytest.mark.parametrize("field", ["anchor_features", "candidate_features", "candidate_head"])
def test_refuses_a_comparison_without_what_it_needs(field):
    with pytest.raises(InputError, match=f"daml needs '{field}'"):
        daml()(replace(Setting().comparison(), **{field: None}))


def test_refuses_other_forms_phases_and_widths():
    with pytest.raises(InputError, match=r"loss.form is .*one of triplet, contrastive, n-pair"):
        checked_options(Daml, OptionValues(form="angular"), "loss")
    with pytest.raises(InputError, match="no phase 'warmup'"):
        daml().enter("warmup")
    with pytest.raises(InputError, match="width 4, but features of width 5 were passed"):
        Daml(features=4)(Setting().comparison())
