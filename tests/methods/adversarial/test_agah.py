"""AGAH: its loss term by term, its class map and codes, and critics whose verdict reaches the encoders."""

import math

import pytest
import torch
from torch.nn import functional as F

from aadml.comparison.clips import Clips
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.options import OptionValues
from aadml.feature_extraction.ground.validation import checked_options
from aadml.methods import METHODS
from aadml.methods.method import Context
from aadml.methods.training.learner import Batch, Epoch
from aadml.methods.training.settings import Training

CONTEXT = Context({"audio": 5, "visual": 7}, 3)
EPOCH = Epoch("train", 0, 1)


def learner(**options):
    torch.manual_seed(0)
    one = METHODS["agah"](CONTEXT, Training(), **({"hidden": (6, 6), "dimension": 4} | options)).learner
    one.before_epoch(clips(), EPOCH)
    return one


def batch(b=7):
    generator = torch.Generator().manual_seed(1)
    features = {m: torch.randn(b, d, generator=generator) for m, d in CONTEXT.dimensions.items()}
    return Batch(features, torch.arange(b) % 3, torch.arange(b), generator, EPOCH)


def clips(b=12, labels=None):
    given = batch(b)
    return Clips(given.features, given.labels if labels is None else labels, tuple(map(str, range(b))), tuple("abc"))


def moved(one, parts):
    one.zero_grad()
    parts["loss"].backward()
    return {n.split(".")[0] for n, p in one.named_parameters() if p.grad is not None and p.grad.abs().max() > 0}


def test_an_item_is_embedded_as_bits_that_are_compared_by_hamming_distance():
    one = learner()
    assert one.similarity == "hamming"
    with torch.no_grad():
        codes = one.embed(batch().features["visual"], "visual")
    assert codes.shape == (7, 4)
    assert set(codes.flatten().tolist()) == {-1.0, 1.0}


def test_the_class_map_is_the_mean_feature_of_each_class_over_both_modalities():
    one, given = learner(), clips()
    with torch.no_grad():
        features = [F.normalize(one.encoders[m](given[m]), dim=1) for m in CONTEXT.modalities]
    for c in range(3):
        mean = sum(values[given.labels == c].mean(0) for values in features) / 2
        torch.testing.assert_close(one.class_features[c], mean / mean.norm())


def test_attention_weighs_the_classes_by_resemblance():
    one = learner()
    f = F.normalize(torch.rand(2, 6), dim=1)
    for row, found in zip(f, one._attended(f), strict=True):
        weights = [1 / (1 + math.exp(-5 * float(row @ m))) for m in one.class_features]
        mixed = sum(w * m for w, m in zip(weights, one.class_features, strict=True)) / sum(weights)
        torch.testing.assert_close(found, 0.8 * row + 0.2 * mixed)


def test_a_class_without_clips_draws_no_attention():
    one = learner()
    one.before_epoch(clips(labels=torch.arange(12) % 2), EPOCH)
    assert not one.class_features[2].any()
    f = F.normalize(torch.rand(1, 6), dim=1)
    weights = torch.sigmoid(5 * f @ one.class_features[:2].T)
    mixed = weights @ one.class_features[:2] / weights.sum()
    torch.testing.assert_close(one._attended(f), 0.8 * f + 0.2 * mixed)


def test_map_and_codes_are_kept_with_the_weights_and_change_with_the_clips():
    one = learner()
    before = {key: value.clone() for key, value in one.state_dict().items()}
    assert {"class_features", "class_codes"} <= before.keys()
    one.before_epoch(clips(labels=(torch.arange(12) + 1) % 3), EPOCH)
    assert not torch.equal(one.class_features, before["class_features"])
    assert set(one.class_codes.flatten().tolist()) == {-1.0, 1.0}


@torch.no_grad()
def test_the_loss_is_the_sum_of_its_terms_as_loops():
    one, given = learner(adv_weight=3.0, class_weight=0.25), batch()
    one.weights |= {"balance": 0.5, "code": 0.125, "quantization": 2.0}
    features = {m: F.normalize(one.encoders[m](given.features[m]), dim=1) for m in CONTEXT.modalities}
    h = {m: torch.tanh(one.hashes[m](one._attended(values))) for m, values in features.items()}
    labels = given.labels.tolist()
    triplet = balance = classes = code = quantization = 0.0
    for m, o in (("audio", "visual"), ("visual", "audio")):
        s = [[float(x @ y / x.norm() / y.norm()) for y in h[o]] for x in h[m]]
        for i in range(7):
            for p in range(7):
                for n in range(7):
                    if labels[p] == labels[i] != labels[n]:
                        triplet += max(0.0, s[i][n] - s[i][p] + 0.3)
        for i, x in enumerate(h[m]):
            cosine = float(x.abs().sum() / x.norm() / 2)  # |1| of four bits is 2
            balance += 1 / (1 + math.exp(cosine))
            quantization += sum((abs(float(v)) - 1) ** 2 for v in x)
            p = torch.sigmoid(one.classifiers[m](one._attended(features[m])))[i]
            for c in range(3):
                mine = c == labels[i]
                code += (float(x @ one.class_codes[c]) - 4 * (1 if mine else -1)) ** 2
                classes -= math.log(float(p[c] if mine else 1 - p[c]))
    adversarial = -float(
        one.critics["audio"](features["visual"]).mean() + one.critics["visual"](features["audio"]).mean()
    )
    expected = triplet + 0.5 * balance + 0.25 * classes + 0.125 * code + 2 * quantization + 3 * adversarial
    assert float(one.players()["hashing"].loss(given)["loss"]) == pytest.approx(expected, rel=1e-5)


def test_each_player_moves_its_own_and_all_is_owned_once():
    one = learner()
    players = one.players()
    assert list(players) == ["critics", "hashing"]
    owned = [id(p) for player in players.values() for p in player.parameters]
    assert sorted(owned) == sorted(id(p) for p in one.parameters())
    assert moved(one, players["critics"].loss(batch())) == {"critics"}


def test_the_verdict_of_the_critics_reaches_the_encoders():
    one, given, silent = learner(adv_weight=1.0), batch(), learner(adv_weight=0.0)
    for learned in (one, silent):
        learned.weights |= {"balance": 0.0, "code": 0.0, "quantization": 0.0}
        learned.zero_grad()
        learned.players()["hashing"].loss(given)["loss"].backward()
    encoder, without = one.encoders["audio"][0].weight.grad, silent.encoders["audio"][0].weight.grad
    one.zero_grad()
    (-one.critics["visual"](one._features(given.features["audio"], "audio")).mean()).backward()
    verdict = one.encoders["audio"][0].weight.grad
    assert verdict.abs().max() > 0
    torch.testing.assert_close(encoder, without + verdict, rtol=1e-4, atol=1e-6)


def test_critics_learn_to_tell_the_modalities_apart():
    one, given = learner(), batch(32)
    critics = one.players()["critics"]
    optimizer = torch.optim.Adam(critics.parameters, lr=1e-2)
    costs = []
    for _ in range(30):
        optimizer.zero_grad()
        cost = critics.loss(given)["loss"]
        cost.backward()
        optimizer.step()
        costs.append(cost.detach())
    assert costs[-1] < costs[0]
    with torch.no_grad():
        audio, visual = (one._features(given.features[m], m) for m in CONTEXT.modalities)
        assert one.critics["audio"](audio).mean() > one.critics["audio"](visual).mean()


def test_no_bits_are_refused():
    with pytest.raises(InputError, match="dimension is 0; pass a whole number from 1"):
        checked_options(METHODS["agah"], OptionValues(dimension=0), "method")


def test_codes_of_classes_begin_at_random():
    torch.manual_seed(0)
    codes = METHODS["agah"](
        Context({"audio": 5, "visual": 7}, 50), Training(), hidden=(6,), dimension=64
    ).learner.class_codes
    assert set(codes.flatten().tolist()) == {-1.0, 1.0}
    assert abs(float(codes.mean())) < 0.1
    assert len(codes.unique(dim=0)) == 50
