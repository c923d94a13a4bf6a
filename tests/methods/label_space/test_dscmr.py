"""DSCMR: its loss term by term, and who shares what."""

import math

import pytest
import torch

from aadml.methods import METHODS
from aadml.methods.method import Context
from aadml.methods.training.learner import Batch, Epoch
from aadml.methods.training.settings import Training

CONTEXT = Context({"audio": 5, "visual": 7}, 3)


def learner(**options):
    torch.manual_seed(0)
    return METHODS["dscmr"](CONTEXT, Training(), **({"hidden": (6,), "dimension": 4} | options)).learner


def batch(b=5):
    generator = torch.Generator().manual_seed(1)
    features = {m: torch.randn(b, d, generator=generator) for m, d in CONTEXT.dimensions.items()}
    return Batch(features, torch.arange(b) % 3, torch.arange(b), generator, Epoch("train", 0, 1))


@torch.no_grad()
def test_the_loss_is_the_sum_of_its_terms_as_loops():
    one, given = learner(alpha=0.5, beta=0.25), batch()
    u, w = (one.embed(given.features[m], m).double() for m in ("audio", "visual"))
    label = 0.0
    for vectors in (u, w):
        outputs = vectors @ one.classifier.weight.double().T + one.classifier.bias.double()
        for row, y in zip(outputs, given.labels.tolist(), strict=True):
            label += math.sqrt(sum((float(v) - (c == y)) ** 2 for c, v in enumerate(row))) / 5
    likelihood = 0.0
    for first, second in ((u, u), (u, w), (w, w)):
        for i, x in enumerate(first):
            for j, y in enumerate(second):
                theta = float(x @ y / x.norm() / y.norm()) / 2
                same = given.labels[i] == given.labels[j]
                likelihood += (math.log(1 + math.exp(theta)) - (theta if same else 0)) / 25
    apart = sum(float((x - y).norm()) for x, y in zip(u, w, strict=True)) / 5
    parts = one.players()["all"].loss(given)
    assert float(parts["loss"]) == pytest.approx(label + 0.5 * likelihood + 0.25 * apart, rel=1e-5)
    assert float(parts["label_loss"]) == pytest.approx(label, rel=1e-5)


def test_modalities_share_the_layer_into_the_common_space_and_the_classifier_alone():
    names = {name.split(".")[0] for name, _ in learner().named_parameters()}
    assert names == {"own", "shared", "classifier"}
    assert learner().shared.out_features == 4


def test_the_embedding_is_the_common_feature_not_the_class_scores():
    given = batch()
    assert learner(dimension=9).embed(given.features["visual"], "visual").shape == (5, 9)
