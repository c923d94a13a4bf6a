"""Few labels: the label loss sees the labeled clips alone, the pairs all of them, through one trunk."""

from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

from aadml.comparison.clips import Clips
from aadml.feature_extraction.feature_file.content import UNLABELLED
from aadml.feature_extraction.ground.errors import InputError
from aadml.methods import METHODS
from aadml.methods.method import Context
from aadml.methods.networks import NetworkOptions
from aadml.methods.training.learner import Batch, Epoch
from aadml.methods.training.settings import Training
from aadml.objective.composition import LossSection
from aadml.objective.neighbor_positives import NeighborOptions

COUNT, LABELED = 12, [0, 3, 5, 8]
CONTEXT = Context({"audio": 5, "visual": 7}, 2, clips=COUNT, unlabelled=COUNT - len(LABELED))
NETWORK = NetworkOptions(hidden=(6,), dropout=0.0)
LOSS = LossSection.of("nt-xent", temperature=0.1, reduction="mean")


def learner(**options):
    torch.manual_seed(0)
    return METHODS["few-labels"](
        CONTEXT, Training(), **({"network": NETWORK, "pair_dimension": 4, "loss": LOSS} | options)
    ).learner


def clips():
    random = torch.Generator().manual_seed(1)
    features = {m: torch.randn(COUNT, d, generator=random) for m, d in CONTEXT.dimensions.items()}
    labels = torch.full((COUNT,), UNLABELLED)
    labels[LABELED] = torch.tensor([0, 1, 0, 1])
    return Clips(features, labels, tuple(map(str, range(COUNT))), ("a", "b"))


def parts(one, given, rows=None):
    rows = torch.arange(COUNT) if rows is None else rows
    one.before_epoch(given, Epoch("train", 0, 1))
    features = {m: given[m][rows] for m in given.modalities}
    batch = Batch(features, given.labels[rows], rows, torch.Generator().manual_seed(2), Epoch("train", 0, 1))
    return one.players()["all"].loss(batch)


def test_the_loss_is_cross_entropy_of_the_labeled_and_matching_of_all():
    one, given = learner(), clips()
    found = parts(one, given)
    label = sum(F.cross_entropy(one.encoders[m](given[m][LABELED]), given.labels[LABELED]) for m in given.modalities)
    spheres = {m: F.normalize(one.spheres[m](one.encoders[m].features(given[m])), dim=1) for m in given.modalities}
    logits = 10 * spheres["audio"] @ spheres["visual"].T
    own = torch.arange(COUNT)
    pairs = (F.cross_entropy(logits, own) + F.cross_entropy(logits.T, own)) / 2
    torch.testing.assert_close(found["label_loss"], label)
    torch.testing.assert_close(found["loss"], label + pairs)


def test_the_labels_of_a_batch_do_not_decide_which_labels_teach():
    one, given = learner(), clips()
    first, second = (parts(one, given, torch.tensor(rows))["label_loss"] for rows in ([1, 2, 4], [0, 3, 5]))
    torch.testing.assert_close(first, second)


def test_of_many_labels_each_step_draws_some(monkeypatch):
    monkeypatch.setattr("aadml.methods.pairwise.few_labels.LABELED", 1)
    one, given = learner(), clips()
    alone = [
        sum(F.cross_entropy(one.encoders[m](given[m][[r]]), given.labels[[r]]) for m in given.modalities)
        for r in LABELED
    ]
    assert any(torch.allclose(parts(one, given)["label_loss"], cost) for cost in alone)


def test_labels_alone_teach_where_pairs_have_no_weight():
    one = learner(loss=LossSection.of("nt-xent", weight=0.0), neighbors=NeighborOptions(positives="own", k=2))
    given = clips()
    found = parts(one, given)
    assert set(found) == {"loss", "label_loss"}
    found["loss"].backward()
    assert one.spheres["audio"].weight.grad is None
    others = [row for row in range(COUNT) if row not in LABELED]
    noisy = {m: given[m].index_fill(0, torch.tensor(others), 3.0) for m in given.modalities}
    torch.testing.assert_close(parts(one, replace(given, features=noisy))["loss"], found["loss"])


def test_pairs_reach_the_trunk_of_the_posteriors():
    one, given = learner(), clips()
    found = parts(one, given)
    (found["loss"] - found["label_loss"]).backward()
    assert all(float(p.grad.abs().sum()) > 0 for m in given.modalities for p in one.encoders[m].hidden.parameters())
    assert not one.encoders["audio"].predicted.weight.grad.any()


@pytest.mark.parametrize("control", ["none", "random"])
def test_neighbors_add_positives(control):
    given = clips()
    plain = parts(learner(), given)["loss"]
    found = parts(learner(neighbors=NeighborOptions(positives="either", k=2, control=control)), given)["loss"]
    assert float(found.detach()) != pytest.approx(float(plain.detach()))


def test_an_item_embeds_as_its_class_posterior():
    vectors = learner().embed(clips()["audio"], "audio")
    torch.testing.assert_close(vectors.sum(1), torch.ones(COUNT))
    assert learner().similarity == "dot"


def test_training_sorts_clips_by_what_few_labels_and_many_pairs_say():
    random = torch.Generator().manual_seed(3)
    classes = torch.arange(400) % 4
    shown = 2 * F.one_hot(classes, 4).float() + 0.7 * torch.randn(400, 4, generator=random)
    features = {m: shown @ torch.randn(4, d, generator=random) for m, d in CONTEXT.dimensions.items()}
    labels = torch.full((400,), UNLABELLED)
    labels[:8] = classes[:8]
    given = Clips(features, labels, tuple(map(str, range(400))), ("a", "b", "c", "d"))
    method = METHODS["few-labels"](
        replace(CONTEXT, classes=4),
        Training(epochs=20, batch=50, learning_rate=0.01),
        network=NETWORK,
        loss=LOSS,
    )
    method.fit(given.select(torch.arange(300)), given.select(torch.arange(0)))
    right = [method.embed(given[m][300:], m).argmax(1) == classes[300:] for m in CONTEXT.modalities]
    assert all(float(one.float().mean()) > 0.6 for one in right)  # chance is 0.25


def test_what_it_cannot_learn_from_is_refused():
    with pytest.raises(InputError, match="the clips have no class or several classes"):
        METHODS["few-labels"](replace(CONTEXT, classes=0), Training())
    one, given = learner(), clips()
    with pytest.raises(InputError, match="no training clip has a label"):
        parts(one, replace(given, labels=torch.full((COUNT,), UNLABELLED)))


def test_a_method_that_needs_the_class_of_every_clip_says_how_many_have_none():
    with pytest.raises(
        InputError, match=r"8 training or validation clips have no label; omit these clips .*unlabelled=drop"
    ):
        METHODS["aadml"](CONTEXT, Training())
