"""ACMR: its triplets as loops, and a game in which the reversed gradient does reach the encoders."""

import math
from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

from aadml.comparison.clips import Clips
from aadml.feature_extraction.ground.errors import InputError
from aadml.methods import METHODS
from aadml.methods.adversarial.acmr import lookalike_triplet, reversal
from aadml.methods.method import Context
from aadml.methods.training.learner import Batch, Epoch
from aadml.methods.training.settings import Training

CONTEXT = Context({"audio": 5, "visual": 7}, 3)
SMALL = {"dimension": 8, "visual_hidden": (6,), "hidden": (6,)}


def learner(**options):
    torch.manual_seed(0)
    return METHODS["acmr"](CONTEXT, Training(), **(SMALL | options)).learner


def batch(b=9, done=5):
    generator = torch.Generator().manual_seed(1)
    features = {m: torch.randn(b, d, generator=generator) for m, d in CONTEXT.dimensions.items()}
    return Batch(features, torch.arange(b) % 3, torch.arange(b), generator, Epoch("train", done, 10))


def gradients(one, parts):
    one.zero_grad()
    parts["loss"].backward()
    return {name: p.grad.clone() for name, p in one.named_parameters() if p.grad is not None}


def test_triplets_are_of_partners_and_the_lookalike_of_another_class():
    given = batch(6)
    vectors = {m: torch.randn(6, 4, generator=given.generator, dtype=torch.float64) for m in CONTEXT.modalities}
    total = 0.0
    for one, other in (("audio", "visual"), ("visual", "audio")):
        x = given.features[one]
        for i in range(6):
            others = [j for j in range(6) if given.labels[j] != given.labels[i]]
            n = max(others, key=lambda j: float(x[i] @ x[j] / x[i].norm() / x[j].norm()))
            near = (vectors[one][i] - vectors[other][i]).square().sum()
            far = (vectors[one][i] - vectors[other][n]).square().sum()
            total += max(0.0, float(0.1 + 5 * near - far)) / 6
    found = lookalike_triplet(vectors, given.features, given.labels, margin=0.1)
    assert float(found) == pytest.approx(total)
    assert total > 0


@pytest.mark.parametrize("margin", [0.1, 40.0])
def test_in_the_source_a_batch_has_one_hinge_and_its_own_class_counts_as_unlike(margin):
    given = batch(6)
    features = {m: values.abs() for m, values in given.features.items()}
    features["visual"][0] *= -1  # less like every other clip than one of its own class, which counts as 0
    vectors = {m: torch.randn(6, 4, generator=given.generator, dtype=torch.float64) for m in CONTEXT.modalities}
    expected = 0.0
    for one, other in (("audio", "visual"), ("visual", "audio")):
        x, total = features[one], 0.0
        for i in range(6):
            alike = [float(x[i] @ x[j] / x[i].norm() / x[j].norm()) for j in range(6)]
            alike = [0.0 if given.labels[j] == given.labels[i] else alike[j] for j in range(6)]
            n = alike.index(max(alike))
            near = (vectors[one][i] - vectors[other][i]).square().sum()
            far = (vectors[one][i] - vectors[other][n]).square().sum()
            total += float(5 * near - far) / 2
        expected += max(0.0, margin + total)
    found = lookalike_triplet(vectors, features, given.labels, margin=margin, fidelity="source")
    assert float(found) == pytest.approx(expected)
    assert expected > 0


def test_triplets_cost_nothing_where_all_clips_are_of_one_class():
    given = batch(4)
    vectors = {m: torch.randn(4, 3, requires_grad=True) for m in CONTEXT.modalities}
    cost = lookalike_triplet(vectors, given.features, torch.zeros(4).long(), margin=1.0)
    assert cost == 0
    cost.backward()
    assert all(torch.equal(v.grad, torch.zeros(4, 3)) for v in vectors.values())


@torch.no_grad()
def test_the_encoders_pay_for_labels_and_triplets_and_gain_by_confusion():
    one, given = learner(adv_weight=0.7, margin=0.2), batch()
    vectors = {m: one.embed(values, m) for m, values in given.features.items()}
    label = sum(F.cross_entropy(one.classifier(v), given.labels) for v in vectors.values())
    triplet = lookalike_triplet(vectors, given.features, given.labels, margin=0.2)
    confusion = sum(
        F.cross_entropy(one.modality_classifier(v), torch.full((9,), number))
        for number, v in enumerate(vectors.values())
    )
    expected = 100 * label + triplet - 0.7 * reversal(given.epoch) * confusion
    torch.testing.assert_close(one.players()["encoders"].loss(given)["loss"], expected)


def test_the_reversal_grows_from_nothing_to_one():
    strengths = [reversal(Epoch("train", number, 50)) for number in range(50)]
    assert strengths[0] == 0
    assert strengths == sorted(strengths)
    assert strengths[25] == pytest.approx(math.tanh(2.5))
    assert 0.99 < strengths[-1] < 1


def test_the_reversed_gradient_of_the_modality_classifier_reaches_the_encoders():
    one, given = learner(adv_weight=0.7), batch()
    with_game = gradients(one, one.players()["encoders"].loss(given))
    released = learner(adv_weight=0.0)
    without = gradients(released, released.players()["encoders"].loss(given))
    vectors = {m: one.embed(values, m) for m, values in given.features.items()}
    of_the_game = gradients(one, {"loss": one._modality_entropy(vectors)})
    strength = 0.7 * reversal(given.epoch)
    of_encoders = [name for name in with_game if name.startswith("encoders")]
    assert of_encoders
    for name in of_encoders:
        assert of_the_game[name].abs().max() > 1e-6
        torch.testing.assert_close(with_game[name], without[name] - strength * of_the_game[name], rtol=1e-4, atol=1e-5)


def test_each_player_owns_its_parameters_and_only_the_classifier_learns_to_tell_apart():
    one = learner()
    players = one.players()
    assert list(players) == ["encoders", "modality_classifier"]
    owned = [id(p) for player in players.values() for p in player.parameters]
    assert sorted(owned) == sorted(id(p) for p in one.parameters())
    moved = gradients(one, players["modality_classifier"].loss(batch()))
    assert {name.split(".")[0] for name in moved} == {"modality_classifier"}


def clips(n=24):
    given = batch(n)
    features = {m: values + (3 if m == "audio" else -3) for m, values in given.features.items()}
    return Clips(features, given.labels, tuple(map(str, range(n))), ("a", "b", "c"))


def trained(monkeypatch=None, **options):
    torch.manual_seed(0)
    settings = Training(epochs=12, batch=12, learning_rate=1e-2, betas=(0.5, 0.999), select="last")
    method = METHODS["acmr"](CONTEXT, settings, **(SMALL | options))
    if monkeypatch:
        alone = {"encoders": method.learner.players()["encoders"]}
        monkeypatch.setattr(method.learner, "players", lambda: alone)
    method.fit(clips(), clips().select(torch.arange(0)))
    return method


def test_without_adversarial_weight_the_encoders_learn_as_if_there_were_no_game(monkeypatch):
    """The released code: its modality classifier is trained, and nobody listens to it."""
    game, no_game = trained(adv_weight=0.0).state(), trained(monkeypatch, adv_weight=0.0).state()
    own = [name for name in game if not name.startswith("modality_classifier")]
    assert all(torch.equal(game[name], no_game[name]) for name in own)
    idle = [name for name in game if name.startswith("modality_classifier")]
    assert not all(torch.equal(game[name], no_game[name]) for name in idle)


def test_the_game_hides_the_modality(monkeypatch):
    monkeypatch.setattr("aadml.methods.adversarial.acmr.LABEL_WEIGHT", 1.0)
    monkeypatch.setattr("aadml.methods.adversarial.acmr.POSITIVE_WEIGHT", 0.0)

    def entropy(adv_weight):
        one = trained(adv_weight=adv_weight).learner
        with torch.no_grad():
            return float(one._modality_entropy({m: one.embed(clips()[m], m) for m in CONTEXT.modalities}))

    assert entropy(5.0) > entropy(0.0) + 0.1


def test_one_modality_is_no_game():
    with pytest.raises(InputError, match="pass data of at least two modalities"):
        METHODS["acmr"](replace(CONTEXT, dimensions={"audio": 5}), Training())


def test_visual_and_other_encoders_have_layers_of_their_own():
    one = learner(visual_hidden=(9, 4), hidden=(3,))
    sizes = {m: [p.shape[0] for n, p in e.named_parameters() if "weight" in n] for m, e in one.encoders.items()}
    assert sizes == {"audio": [3, 8], "visual": [9, 4, 8]}
