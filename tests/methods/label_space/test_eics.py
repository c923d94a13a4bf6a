"""EICS: two subspaces, one shared by the modalities, one each's own, joined at equal weight."""

import pytest
import torch
from torch.nn import functional as F

from aadml.losses.label_losses import row_norm
from aadml.methods import METHODS
from aadml.methods.method import Context
from aadml.methods.networks import NetworkOptions
from aadml.methods.pair_losses import partner_distance, same_class_losses
from aadml.methods.training.learner import Batch, Epoch
from aadml.methods.training.settings import Training
from tests.sections import typed

CONTEXT = Context({"audio": 5, "visual": 7}, 3)


def learner(**options):
    torch.manual_seed(0)
    small = {"network": NetworkOptions(hidden=(6,), dropout=0.0), "hidden": (6,), "explicit": 4}
    return METHODS["eics"](CONTEXT, Training(), **typed(**small | options)).learner


def batch(b=7):
    generator = torch.Generator().manual_seed(1)
    features = {m: 3 * torch.randn(b, d, generator=generator) for m, d in CONTEXT.dimensions.items()}
    return Batch(features, torch.arange(b) % 3, torch.arange(b), generator, Epoch("train", 0, 1))


@torch.no_grad()
def test_the_cosine_of_embeddings_is_the_mean_of_both_cosines():
    one, given = learner(), batch()
    joined = {m: one.embed(given.features[m], m) for m in CONTEXT.modalities}
    assert joined["audio"].shape == (7, 4 + 3)
    explicit = [one._explicit(given.features[m], m) for m in CONTEXT.modalities]
    implicit = [one.implicit[m](given.features[m]) for m in CONTEXT.modalities]
    mean = (F.cosine_similarity(*explicit) + F.cosine_similarity(*implicit)) / 2
    torch.testing.assert_close(F.cosine_similarity(joined["audio"], joined["visual"]), mean)


@torch.no_grad()
def test_the_loss_is_the_sum_of_its_terms():
    one, given = learner(margin=1.5), batch()
    one.weights = {"explicit": 0.5, "correlation": 0.25, "apart": 2.0, "triplet": 0.75}
    u = {m: one._explicit(given.features[m], m) for m in CONTEXT.modalities}
    f = {m: one.implicit[m](given.features[m]) for m in CONTEXT.modalities}
    triplets = []
    for x, y in ((f["audio"], f["visual"]), (f["visual"], f["audio"])):
        d = (x[:, None] - y[None]).square().sum(2)
        same = given.labels[:, None] == given.labels[None]
        terms = [
            d[i, p] - d[i, n] + 1.5 for i in range(7) for p in range(7) for n in range(7) if same[i, p] > same[i, n]
        ]
        active = [term for term in terms if term > 0]
        triplets.append(sum(active) / len(active))
    expected = sum(row_norm(values, given.labels) for values in f.values()) + 0.75 * sum(triplets) / 2
    expected = expected + 0.5 * sum(row_norm(one.classifier(values), given.labels) for values in u.values())
    expected = expected + 0.25 * same_class_losses(u, given.labels) + 2.0 * partner_distance(u)
    torch.testing.assert_close(one.players()["all"].loss(given)["loss"], expected)


def test_the_explicit_subspace_is_shared_and_the_implicit_one_is_each_modalitys_own():
    one = learner()
    names = {name.split(".")[0] for name, _ in one.named_parameters()}
    assert names == {"own", "shared", "classifier", "implicit"}
    assert set(one.implicit) == {"audio", "visual"}


@pytest.mark.parametrize(("weight", "part"), [("explicit", "classifier"), ("triplet", "implicit")])
def test_every_part_learns(weight, part):
    one = learner(label_loss={"name": "row-norm", "weight": 0.0})
    one.weights = dict.fromkeys(one.weights, 0.0) | {weight: 1.0}
    one.players()["all"].loss(batch())["loss"].backward()
    assert any(p.grad is not None and p.grad.abs().max() > 0 for p in getattr(one, part).parameters())
