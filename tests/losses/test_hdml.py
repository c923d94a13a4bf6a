import math
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from aadml.comparison import Comparison
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.options import OptionValues
from aadml.feature_extraction.ground.validation import checked_options
from aadml.losses.hdml import Hdml
from aadml.losses.kernels.generated_negatives import GenerativeLoss, draw_triples

FORMS = pytest.mark.parametrize("form", ["triplet", "n-pair"])


class Setting:
    """Two encoders of nine clips in three classes, in float64."""

    def __init__(self, labels=None, seed=0):
        torch.manual_seed(seed)
        self.labels = torch.arange(9) % 3 if labels is None else labels
        self.inputs = [torch.randn(len(self.labels), 6, dtype=torch.float64) for _ in range(2)]
        self.bodies = nn.ModuleList(nn.Linear(6, 5).double() for _ in range(2))
        self.heads = nn.ModuleList(nn.Linear(5, 4).double() for _ in range(2))
        self.encoders = [*self.bodies.parameters(), *self.heads.parameters()]

    def comparison(self):
        features = [body(x).tanh() for body, x in zip(self.bodies, self.inputs, strict=True)]
        anchors, candidates = (head(f) for head, f in zip(self.heads, features, strict=True))
        plain = Comparison.of_labels(anchors, candidates, self.labels, self.labels)
        own = {"anchor_features": features[0], "candidate_features": features[1], "candidate_head": self.heads[1]}
        return replace(plain, **own, anchor_class=self.labels, candidate_class=self.labels)


FIDELITIES = pytest.mark.parametrize("fidelity", ["source", "repaired"])


@pytest.fixture
def constants(monkeypatch):
    """Numbers of which every term of a loss is a visible part."""
    for name, value in (("TRUST", 2.0), ("BALANCE", 0.3), ("CLASS_FACTOR", 7.0)):
        monkeypatch.setattr(f"aadml.losses.hdml.{name}", value)


def hdml(**options):
    torch.manual_seed(1)
    return Hdml(dimension=4, features=5, classes=3, hidden=16, **options).double()


def vectors(loss, comparison):
    generator = torch.Generator().manual_seed(int(loss.draws))
    triples = draw_triples(comparison, generator)
    rows = comparison.anchors[triples.anchor], comparison.candidates[triples.positive]
    return triples, (*rows, comparison.candidates[triples.negative])


def pulled_one(a, p, n, alpha, average):
    near, far = float((a - p).norm()), float((a - n).norm())
    return a + (near + (far - near) * math.exp(-alpha / average)) / far * (n - a) if near < far else n


def cost_one(form, k, a, p, negatives, rivals):
    if form == "triplet":
        return max(0.0, float((a[k] - p[k]).square().sum() - (a[k] - negatives[k]).square().sum()) + 1.0)
    crowd = sum(math.exp(float(a[k] @ negatives[j] - a[k] @ p[k])) for j in range(len(a)) if rivals[k, j])
    return math.log1p(crowd)


@FORMS
def test_the_encoders_pay_for_real_and_pulled_negatives_by_how_good_the_generator_is(form, constants):
    setting, loss = Setting(), hdml(form=form, pull=3.0).eval()
    loss.metric_average.fill_(1.5)
    loss.generator_average.fill_(4.0)
    comparison = setting.comparison()
    triples, (a, p, n) = vectors(loss, comparison)
    with torch.no_grad():
        pulled = torch.stack([pulled_one(a[k], p[k], n[k], 3.0, 1.5) for k in range(len(a))])
        made = setting.heads[1](loss.generator(pulled))
        rivals = comparison.negatives[triples.anchor][:, triples.negative]
        weight = math.exp(-2.0 / 4.0)
        expected = torch.zeros(9, dtype=torch.float64)
        for k, anchor in enumerate(triples.anchor.tolist()):
            real, synthetic = (cost_one(form, k, a, p, negatives, rivals) for negatives in (n, made))
            expected[anchor] += weight * real + (1 - weight) * synthetic
    found = loss(comparison)
    assert torch.allclose(found.total, expected, atol=1e-9)
    lengths = float((a.square().sum() + p.square().sum()).detach()) / len(a)
    assert found.penalty is None if form == "triplet" else found.penalty.item() == pytest.approx(3e-3 / 4 * lengths)


def test_the_generator_pays_for_reconstruction_and_for_classes_it_confuses(constants):
    setting, loss = Setting(), hdml(pull=3.0).eval()
    loss.metric_average.fill_(1.5)
    comparison = setting.comparison()
    triples, (a, p, n) = vectors(loss, comparison)
    with torch.no_grad():
        pulled = torch.stack([pulled_one(a[k], p[k], n[k], 3.0, 1.5) for k in range(len(a))])
        confusion = F.cross_entropy(loss.classifier(loss.generator(pulled)), setting.labels[triples.negative])
        features = comparison.candidate_features
        rebuilt = (loss.generator(comparison.candidates) - features).square().sum()
        known = F.cross_entropy(loss.classifier(features), setting.labels)
        expected = 0.7 * rebuilt + 0.3 * 7.0 * confusion + known
    assert loss.generator_loss(comparison).item() == pytest.approx(expected.item(), rel=1e-9)


@FORMS
def test_in_the_source_anchors_and_positives_are_generated_too(form, constants):
    setting, loss = Setting(), hdml(form=form, pull=3.0, fidelity="source").eval()
    loss.metric_average.fill_(1.5)
    loss.generator_average.fill_(4.0)
    comparison = setting.comparison()
    triples, (a, p, n) = vectors(loss, comparison)
    with torch.no_grad():
        pulled = torch.stack([pulled_one(a[k], p[k], n[k], 3.0, 1.5) for k in range(len(a))])
        made = [setting.heads[1](loss.generator(rows)) for rows in (a, p, pulled)]
        rivals = comparison.negatives[triples.anchor][:, triples.negative]
        weight = math.exp(-2.0 / 4.0)
        expected = torch.zeros(9, dtype=torch.float64)
        for k, anchor in enumerate(triples.anchor.tolist()):
            real, synthetic = cost_one(form, k, a, p, n, rivals), cost_one(form, k, *made, rivals)
            expected[anchor] += weight * real + (1 - weight) * synthetic
    assert torch.allclose(loss(comparison).total, expected, atol=1e-9)


def test_in_the_source_every_row_of_every_triple_is_rebuilt_and_kept_in_its_class(constants):
    setting, loss = Setting(), hdml(pull=3.0, fidelity="source").eval()
    loss.metric_average.fill_(1.5)
    comparison = setting.comparison()
    triples, (a, p, n) = vectors(loss, comparison)
    rows = [triples.anchor, triples.positive, triples.negative]
    with torch.no_grad():
        pulled = torch.stack([pulled_one(a[k], p[k], n[k], 3.0, 1.5) for k in range(len(a))])
        features = [comparison.anchor_features, comparison.candidate_features, comparison.candidate_features]
        rebuilt = sum(
            float((f[row] - loss.generator(z)).square().sum())
            for f, row, z in zip(features, rows, (a, p, n), strict=True)
        )
        guesses = loss.classifier(loss.generator(torch.cat([a, p, pulled])))
        confusion = F.cross_entropy(guesses, setting.labels[torch.cat(rows)])
        known = F.cross_entropy(loss.classifier(comparison.candidate_features), setting.labels)
        expected = 0.7 * rebuilt + 0.3 * 7.0 * confusion + known
    assert loss.generator_loss(comparison).item() == pytest.approx(expected.item(), rel=1e-9)


def test_negatives_are_pulled_to_the_distance_of_the_positive_as_the_loss_vanishes():
    loss = hdml()
    a, p, n = torch.zeros(1, 2).double(), torch.tensor([[1.0, 0.0]]).double(), torch.tensor([[0.0, 5.0]]).double()
    assert torch.allclose(loss.pulled(a, p, n), n)
    loss.metric_average.fill_(1e-9)
    assert torch.allclose(loss.pulled(a, p, n), torch.tensor([[0.0, 1.0]]).double())
    assert torch.equal(loss.pulled(a, n, p), p)


@FORMS
@FIDELITIES
def test_neither_players_gradient_reaches_the_other(form, fidelity):
    setting, loss = Setting(), hdml(form=form, fidelity=fidelity)
    loss.generator_average.fill_(1e4)
    loss(setting.comparison()).total.sum().backward()
    assert all(parameter.grad is None for parameter in loss.parameters())
    assert all(parameter.grad.abs().sum() > 0 for parameter in setting.encoders)
    for parameter in setting.encoders:
        parameter.grad = None
    loss.generator_loss(setting.comparison()).backward()
    assert all(parameter.grad is None for parameter in setting.encoders)
    assert all(parameter.grad.abs().sum() > 0 for parameter in loss.parameters())


def test_the_classifier_learns_from_real_features_alone():
    setting, loss = Setting(), hdml()
    comparison = setting.comparison()
    loss.generator_loss(comparison).backward()
    weight = loss.classifier.weight.detach().requires_grad_()
    known = F.cross_entropy(
        F.linear(comparison.candidate_features.detach(), weight, loss.classifier.bias), setting.labels
    )
    (expected,) = torch.autograd.grad(known, weight)
    assert torch.allclose(loss.classifier.weight.grad, expected)


def test_a_running_mean_keeps_its_momentum_and_takes_the_rest_of_the_new_loss():
    setting, loss = Setting(), hdml()
    loss.metric_average.fill_(2.0)
    fresh = hdml()
    fresh(setting.comparison())
    loss(setting.comparison())
    assert loss.metric_average.item() == pytest.approx(0.9 * 2.0 + 0.1 * fresh.metric_average.item())


def test_running_means_follow_both_losses_in_training_alone():
    setting, loss = Setting(), hdml()
    assert loss.metric_average.isinf()
    first = loss(setting.comparison()).total.sum()
    assert loss.metric_average.item() == pytest.approx(first.item())
    cost = loss.generator_loss(setting.comparison())
    assert 0 < loss.generator_average.item() < cost.item()
    before = {name: value.clone() for name, value in loss.state_dict().items()}
    loss.eval()
    loss(setting.comparison())
    loss.generator_loss(setting.comparison())
    assert all(torch.equal(before[name], value) for name, value in loss.state_dict().items())


def test_begins_with_real_negatives_and_a_restored_state_goes_on_the_same():
    setting, loss = Setting(labels=torch.arange(30) % 3), hdml()
    _, (a, p, n) = vectors(loss, setting.comparison())
    real = ((a - p).square().sum(1) - (a - n).square().sum(1) + 1).clamp_min(0)
    assert torch.allclose(loss(setting.comparison()).total, real)
    restored = hdml()
    restored.load_state_dict(loss.state_dict())
    assert torch.equal(restored(setting.comparison()).total, loss(setting.comparison()).total)


def test_both_players_learn():
    setting, loss = Setting(), hdml()
    setting.inputs = [inputs + 3 * F.one_hot(setting.labels, 6) for inputs in setting.inputs]
    encoders, generator = torch.optim.Adam(setting.encoders, 1e-2), torch.optim.Adam(loss.parameters(), 3e-2)
    costs = []
    for _ in range(60):
        step = []
        for optimizer, cost in (
            (encoders, lambda: loss(setting.comparison()).total.mean()),
            (generator, lambda: loss.generator_loss(setting.comparison())),
        ):
            optimizer.zero_grad()
            step.append(cost())
            step[-1].backward()
            optimizer.step()
        costs.append([value.item() for value in step])
    assert costs[-1][0] < 0.5 * costs[0][0]
    assert costs[-1][1] < 0.5 * costs[0][1]


@pytest.mark.parametrize("pull", [0.0, 90.0])
def test_a_loss_that_has_vanished_stays_a_number(pull):
    loss, comparison = hdml(pull=pull), Setting().comparison()
    loss.metric_average.zero_()
    loss.generator_average.zero_()
    total = loss(comparison).total.sum()
    assert torch.isfinite(total)
    assert torch.isfinite(loss.generator_loss(comparison))


def test_trains_in_one_phase_with_both_players():
    phases = hdml().phases(10)
    assert [(phase.name, phase.epochs, phase.players) for phase in phases] == [("joint", 10, ("encoders", "generator"))]
    assert isinstance(hdml(), GenerativeLoss)


def test_costs_nothing_where_there_are_no_triples():
    for labels in (torch.zeros(4, dtype=torch.int64), torch.zeros(0, dtype=torch.int64)):
        setting, loss = Setting(labels=labels), hdml(form="n-pair")
        terms = loss(setting.comparison())
        (terms.total.sum() + terms.penalty + loss.generator_loss(setting.comparison())).backward()
        assert terms.total.sum() == 0
        assert loss.metric_average.isinf()
        assert all(torch.isfinite(parameter.grad).all() for parameter in setting.encoders)


@pytest.mark.parametrize("field", ["candidate_features", "candidate_class", "candidate_head"])
def test_refuses_a_comparison_without_what_it_needs(field):
    lacking = replace(Setting().comparison(), **{field: None})
    with pytest.raises(InputError, match=f"hdml needs '{field}'"):
        hdml()(lacking) if field == "candidate_head" else hdml().generator_loss(lacking)


def test_refuses_clips_in_place_of_classes():
    setting = Setting(labels=torch.arange(9) // 2)
    with pytest.raises(InputError, match="built for the classes 0 to 2, but the clips have classes 0 to 4"):
        hdml().generator_loss(setting.comparison())


def test_refuses_clips_without_a_class():
    comparison = replace(Setting().comparison(), candidate_class=torch.tensor([-1, *[0, 1] * 4]))
    with pytest.raises(InputError, match="built for the classes 0 to 2, but the clips have classes -1 to 1"):
        hdml().generator_loss(comparison)


def test_refuses_other_forms_and_phases():
    for wrong in ({"form": "contrastive"}, {"fidelity": "released"}):
        with pytest.raises(InputError, match=r"one of triplet, n-pair|one of source, repaired"):
            checked_options(Hdml, OptionValues(**wrong), "loss")
    with pytest.raises(InputError, match="no phase 'metric'"):
        hdml().enter("metric")


@FORMS
@FIDELITIES
def test_a_batch_of_one_class_has_no_triples_and_no_loss(form, fidelity):
    setting = Setting(labels=torch.zeros(4, dtype=torch.int64))  # no negatives
    terms = hdml(form=form, fidelity=fidelity)(setting.comparison())
    assert terms.total.sum() == 0
    assert terms.possible.sum() == 0
