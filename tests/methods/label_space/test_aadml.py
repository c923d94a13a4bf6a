"""CCTL: AADML with complete cross-triplets and without proxies."""

import torch

from aadml.methods import METHODS
from aadml.methods.method import Context
from aadml.methods.networks import NetworkOptions
from aadml.methods.training.learner import Batch, Epoch
from aadml.methods.training.settings import Training
from tests.sections import typed

CONTEXT = Context({"audio": 5, "visual": 7}, 3)
NETWORK = NetworkOptions(**{"hidden": (6,), "dropout": 0.0})


def built(name, **sections):
    torch.manual_seed(0)
    return METHODS[name](CONTEXT, Training(), network=NETWORK, **typed(**sections)).learner


def batch(b=7):
    generator = torch.Generator().manual_seed(1)
    features = {m: 3 * torch.randn(b, d, generator=generator) for m, d in CONTEXT.dimensions.items()}
    return Batch(features, torch.arange(b) % 3, torch.arange(b), generator, Epoch("train", 0, 1))


def parts(learner, given):
    (player,) = learner.players().values()
    return player.loss(given)


@torch.no_grad()
def test_the_metric_loss_is_over_all_eight_combinations_of_modalities():
    given, learner = batch(), built("cctl", margin=0.7)
    vectors = torch.cat([learner.encoders[m](given.features[m]) for m in CONTEXT.modalities]).double()
    labels = given.labels.repeat(2).tolist()
    costs = []
    for a in range(14):
        for p in range(14):
            for n in range(14):
                if a != p and labels[a] == labels[p] and labels[a] != labels[n]:
                    near, far = ((vectors[a] - vectors[k]).square().sum() for k in (p, n))
                    costs.append(max(0.0, float(near - far) + 0.7))
    expected = torch.tensor(sum(costs) / sum(cost > 0 for cost in costs))
    torch.testing.assert_close(parts(learner, given)["metric_loss"], expected, rtol=1e-4, atol=1e-4)


def test_it_is_aadml_with_the_complete_triplet_and_no_proxies():
    sections = {"loss": {"name": "triplet", "margin": 1.0}, "directions": ("both-both",)}
    ours, theirs = parts(built("cctl"), batch()), parts(built("aadml", **sections), batch())
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[key], theirs[key]) for key in ours)


def test_the_label_loss_can_stand_alone():
    given, learner = (
        batch(),
        built("aadml", loss={"name": "triplet", "weight": 0.0}, label_loss={"name": "ce", "weight": 2.0}),
    )
    found = parts(learner, given)
    expected = sum(
        torch.nn.functional.cross_entropy(learner.encoders[m](given.features[m]), given.labels)
        for m in CONTEXT.modalities
    )
    torch.testing.assert_close(found["loss"], 2 * expected)
