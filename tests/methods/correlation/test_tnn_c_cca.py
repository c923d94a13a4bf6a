"""TNN-C-CCA: cluster CCA below or above, triplets of audio anchors between."""

import pytest
import torch

from aadml.comparison.clips import Clips
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.options import OptionValues, keywords, schema
from aadml.feature_extraction.ground.validation import checked_options
from aadml.methods import METHODS
from aadml.methods.method import Context
from aadml.methods.training.learner import Batch, Epoch
from aadml.methods.training.settings import Training
from tests.sections import typed

CONTEXT = Context({"audio": 5, "visual": 7}, 3)


def made(name, context, training, **options):
    """Build a method of flat options, checked as those of a config are."""
    own = {key: value for key, value in options.items() if key in schema(METHODS[name])}
    checked = checked_options(METHODS[name], OptionValues(**own), "method")
    return METHODS[name](context, training, **keywords(METHODS[name], OptionValues(**typed(**options) | vars(checked))))


def clips(n=40):
    generator = torch.Generator().manual_seed(2)
    labels = torch.arange(n) % 3
    features = {m: torch.randn(n, d, generator=generator) for m, d in CONTEXT.dimensions.items()}
    for values in features.values():
        values[:, :3] += 2 * torch.eye(3)[labels]
    return Clips(features, labels, tuple(map(str, range(n))), tuple("abc"))


def built(epochs=2, **options):
    torch.manual_seed(0)
    settings = Training(epochs=epochs, batch=20, learning_rate=1e-3)
    return made("tnn-c-cca", CONTEXT, settings, **({"hidden": (6,), "dimension": 4, "dropout": 0.0} | options))


def test_below_the_branches_lies_the_cluster_cca_of_the_training_clips():
    method, data = built(), clips()
    method.fit(data, data.select(torch.arange(0)))
    linear = made("c-cca", CONTEXT, Training(), dimension=4)
    linear.fit(data, data.select(torch.arange(0)))
    for modality in data.modalities:
        below = method.learner.solution(data.matrix(modality), modality)
        torch.testing.assert_close(below, linear.embed(data[modality], modality))
        outputs = method.learner.branches[modality](below)
        torch.testing.assert_close(method.embed(data[modality], modality), outputs)


def test_anchors_are_audio_and_positives_and_negatives_visual():
    learner, data = built(margin=0.9).learner, clips(8)
    given = Batch(dict(data.features), data.labels, torch.arange(8), torch.Generator(), Epoch("train", 0, 1))
    audio, visual = (learner.embed(data.matrix(m), m).detach().double() for m in data.modalities)
    costs = []
    for a in range(8):
        for p in range(8):
            for n in range(8):
                if data.labels[a] == data.labels[p] and data.labels[a] != data.labels[n]:
                    near, far = ((audio[a] - visual[k]).square().sum() for k in (p, n))
                    costs.append(max(0.0, float(near - far) + 0.9))
    active = [cost for cost in costs if cost > 0]
    found = learner.players()["branches"].loss(given)["loss"].detach()
    assert float(found) == pytest.approx(sum(active) / len(active), rel=1e-4)


def test_in_the_source_a_partner_is_no_positive():
    learner, data = built(margin=0.9, fidelity="source").learner, clips(8)
    given = Batch(dict(data.features), data.labels, torch.arange(8), torch.Generator(), Epoch("train", 0, 1))
    audio, visual = (learner.embed(data.matrix(m), m).detach().double() for m in data.modalities)
    costs = []
    for a in range(8):
        for p in (p for p in range(8) if p != a and data.labels[a] == data.labels[p]):
            for n in (n for n in range(8) if data.labels[a] != data.labels[n]):
                near, far = ((audio[a] - visual[k]).square().sum() for k in (p, n))
                costs.append(max(0.0, float(near - far) + 0.9))
    active = [cost for cost in costs if cost > 0]
    found = learner.players()["branches"].loss(given)["loss"].detach()
    assert float(found) == pytest.approx(sum(active) / len(active), rel=1e-4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dimension": 6}, "pass a whole number from 1 to 5"),
        ({"selection": "hardst"}, "did you mean 'hardest'"),
    ],
)
def test_what_cannot_be_is_refused(options, message):
    with pytest.raises(InputError, match=message):
        built(**options)
