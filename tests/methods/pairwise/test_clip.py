"""CLIP: its loss is cross-entropy on pairs both ways, its scale is learned and bounded."""

import math

import pytest
import torch
from torch.nn import functional as F

from aadml.comparison.clips import Clips
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.options import OptionValues
from aadml.feature_extraction.ground.validation import checked_options
from aadml.losses.kernels.partners import _Partners
from aadml.methods import METHODS
from aadml.methods.method import Context
from aadml.methods.training.learner import Batch, Epoch
from aadml.methods.training.settings import Training

CONTEXT = Context({"audio": 5, "visual": 7}, 3)


def learner(**options):
    torch.manual_seed(0)
    return METHODS["clip"](CONTEXT, Training(), **({"hidden": (6,), "dimension": 4, "dropout": 0.0} | options)).learner


def batch(b=7):
    generator = torch.Generator().manual_seed(1)
    features = {m: torch.randn(b, d, generator=generator) for m, d in CONTEXT.dimensions.items()}
    return Batch(features, torch.arange(b) % 3, torch.arange(20, 20 + b), generator, Epoch("train", 0, 1))


def logits(one, given):
    audio, visual = (F.normalize(one.heads[m](given.features[m]), dim=1) for m in CONTEXT.modalities)
    return one.log_scale.exp() * audio @ visual.T


def test_the_loss_is_the_mean_cross_entropy_of_partners_both_ways():
    one, given = learner(), batch()
    scores, target = logits(one, given), torch.arange(7)
    expected = (F.cross_entropy(scores, target) + F.cross_entropy(scores.T, target)) / 2
    torch.testing.assert_close(one.players()["all"].loss(given)["loss"], expected)


def test_both_directions_have_the_gradients_of_one_matrix_of_logits(monkeypatch):
    one, given = learner(), batch()
    made = []
    monkeypatch.setattr(_Partners, "forward", lambda *args, plain=_Partners.forward: made.append(1) or plain(*args))
    parameters = list(one.players()["all"].parameters)
    ours = torch.autograd.grad(one.players()["all"].loss(given)["loss"], parameters)
    scores, target = logits(one, given), torch.arange(7)
    expected = (F.cross_entropy(scores, target) + F.cross_entropy(scores.T, target)) / 2
    torch.testing.assert_close(ours, torch.autograd.grad(expected, parameters))
    assert any(parameter is one.log_scale for parameter in parameters)
    assert len(made) == 1


def test_the_scale_starts_at_the_temperature_is_learned_and_held_at_a_hundred():
    one = learner()
    assert float(one.log_scale.detach().exp()) == pytest.approx(1 / 0.07)
    one.players()["all"].loss(batch())["loss"].backward()
    assert float(one.log_scale.grad) != 0
    one.log_scale.data.fill_(50.0)
    parts = one.players()["all"].loss(batch())
    assert float(parts["scale"].detach()) == pytest.approx(100)
    parts["loss"].backward()
    assert math.isfinite(float(one.log_scale.grad))


def test_without_hidden_layers_heads_are_linear():
    assert [type(layer).__name__ for layer in learner(hidden=()).heads["audio"]] == ["Linear"]


def test_labels_play_no_part():
    data = batch(6)
    clips = Clips(data.features, data.labels, tuple("abcdef"), tuple("xyz"))
    other = Clips(data.features, data.labels.flip(0), tuple("abcdef"), tuple("xyz"))
    states = []
    for one in (clips, other):
        torch.manual_seed(0)
        method = METHODS["clip"](CONTEXT, Training(epochs=2, batch=6), hidden=(6,), dimension=4)
        method.fit(one, one.select(torch.arange(0)))
        states.append(method.state())
    assert all(torch.equal(states[0][key], states[1][key]) for key in states[0])


def test_impossible_options_and_features_are_refused():
    with pytest.raises(InputError, match=r"temperature is 0.0; pass a number from 0\.01 to 1"):
        checked_options(METHODS["clip"], OptionValues(temperature=0.0), "method")
    with pytest.raises(InputError, match="a whole number from 1"):
        checked_options(METHODS["clip"], OptionValues(dimension=0), "method")
    with pytest.raises(InputError, match="clip needs vectors, but the text"):
        METHODS["clip"](Context({"audio": 5, "text": 0}, 3), Training())
    with pytest.raises(InputError, match="two modalities"):
        METHODS["clip"](Context({"audio": 5}, 3), Training())
