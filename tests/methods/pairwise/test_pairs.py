"""Pairs: the symmetric contrastive loss of two small networks, its temperature learned, duplicates no negatives."""

import pytest
import torch
from torch.nn import functional as F

from aadml.comparison.clips import Clips
from aadml.feature_extraction.ground.errors import InputError
from aadml.methods import METHODS
from aadml.methods.method import Context
from aadml.methods.networks import NetworkOptions
from aadml.methods.pairwise.matching import same_clips
from aadml.methods.pairwise.teacher import dcca_space
from aadml.methods.training.learner import Batch, Epoch
from aadml.methods.training.session import Checkpoint, Session
from aadml.methods.training.settings import Training
from aadml.objective.neighbor_positives import NeighborOptions

CONTEXT = Context({"audio": 5, "visual": 7}, 0)
NETWORK = NetworkOptions(hidden=(6,), dropout=0.0)
LOSS = {"name": "nt-xent", "temperature": 0.1, "reduction": "mean"}


def learner(**options):
    torch.manual_seed(0)
    return METHODS["pairs"](
        CONTEXT, Training(), **({"network": NETWORK, "dimension": 4, "loss": LOSS} | options)
    ).learner


def clips(count=9):
    generator = torch.Generator().manual_seed(1)
    return Clips.of(None, **{m: torch.randn(count, d, generator=generator) for m, d in CONTEXT.dimensions.items()})


def batch(given):
    generator = torch.Generator().manual_seed(2)
    rows = torch.arange(len(given))
    return Batch(given.features, given.labels, rows, generator, Epoch("train", 0, 1))


def loss_of(one, given):
    one.before_epoch(given, Epoch("train", 0, 1))
    return one.players()["all"].loss(batch(given))["loss"]


def cost(one, given):
    return float(loss_of(one, given).detach())


def expected(one, given, masked):
    audio, visual = (one.embed(given[m], m) for m in CONTEXT.modalities)
    logits = (one.matching.log_scale.exp() * audio @ visual.T).masked_fill(masked, -torch.inf)
    own = torch.arange(len(given))
    return float((F.cross_entropy(logits, own) + F.cross_entropy(logits.T, own)).detach()) / 2


def test_the_loss_is_cross_entropy_of_pairs_both_ways():
    one, given = learner(), clips()
    none = torch.zeros(9, 9, dtype=torch.bool)
    assert cost(one, given) == pytest.approx(expected(one, given, none), abs=1e-5)
    assert float(one.matching.log_scale.detach().exp()) == pytest.approx(10)


def test_clips_that_share_their_features_are_not_each_others_negatives():
    features = {m: values.clone() for m, values in clips().features.items()}
    features["audio"][4] = features["audio"][2]
    features["visual"][7] = features["visual"][2]
    given = Clips.of(None, **features)
    assert same_clips(given)[[2, 4, 7]].unique().numel() == 1
    assert same_clips(given).unique().numel() == 7
    masked = torch.zeros(9, 9, dtype=torch.bool)
    for row, column in [(2, 4), (2, 7), (4, 7)]:
        masked[row, column] = masked[column, row] = True
    one = learner()
    assert cost(one, given) == pytest.approx(expected(one, given, masked), abs=1e-5)
    keeping = learner(duplicates="keep")
    none = torch.zeros_like(masked)
    assert cost(keeping, given) == pytest.approx(expected(keeping, given, none), abs=1e-5)


def test_the_temperature_is_learned_where_the_loss_has_one():
    one, given = learner(), clips()
    loss_of(one, given).backward()
    assert float(one.matching.log_scale.grad.abs()) > 0
    assert learner(learn_temperature=False).matching.log_scale is None
    assert learner(loss="triplet").matching.log_scale is None


def test_a_running_average_of_the_networks_embeds():
    one, plain, given = learner(average=0.75), learner(), clips()
    before = one.embed(given["audio"], "audio")
    assert torch.equal(before, plain.embed(given["audio"], "audio"))
    weights = [parameter.detach().clone() for parameter in one.encoders.parameters()]
    with torch.no_grad():
        for parameter in one.encoders.parameters():
            parameter.add_(1.0)
    one.calibrate(given)
    for was, kept in zip(weights, one.averaged.parameters(), strict=True):
        torch.testing.assert_close(kept, was + 0.25)
    loss_of(one, given)  # each step takes in what the last one left
    for was, kept in zip(weights, one.averaged.parameters(), strict=True):
        torch.testing.assert_close(kept, was + 0.25 + 0.25 * 0.75)
    assert not any(parameter.requires_grad for parameter in one.averaged.parameters())
    assert {id(p) for p in one.players()["all"].parameters}.isdisjoint(map(id, one.averaged.parameters()))


@pytest.mark.slow
def test_training_finds_the_partners_of_clips_that_share_what_they_show():
    generator = torch.Generator().manual_seed(3)
    shown = torch.randn(300, 3, generator=generator)
    features = {m: shown @ torch.randn(3, d, generator=generator) for m, d in CONTEXT.dimensions.items()}
    given = Clips.of(None, **features)
    train, valid = given.select(torch.arange(200)), given.select(torch.arange(200, 300))
    settings = Training(epochs=30, batch=50, learning_rate=0.01, criterion="recall@10")
    method = METHODS["pairs"](CONTEXT, settings, network=NETWORK, dimension=4, loss=LOSS)
    method.fit(train, valid)
    ranks = (method.embed(valid["audio"], "audio") @ method.embed(valid["visual"], "visual").T).argsort(1)
    found = (ranks[:, -10:] == torch.arange(100)[:, None]).any(1).float().mean()
    assert float(found) > 0.6  # chance is 0.1


def soft_targets(one, given, targets):
    """Cross-entropy of both directions against rows of targets, by loops."""
    audio, visual = (one.embed(given[m], m).detach() for m in CONTEXT.modalities)
    logits, total = one.matching.log_scale.detach().exp() * audio @ visual.T, 0.0
    for scores, wanted in ((logits, targets["audio"]), (logits.T, targets["visual"])):
        for i in range(len(given)):
            total -= sum(float(wanted[i, j] * scores[i].log_softmax(0)[j]) for j in range(len(given)))
    return total / 2 / len(given)


def test_continuous_weights_are_soft_targets_from_within_the_modality():
    supcon = {"name": "supcon", "temperature": 0.1, "reduction": "mean"}
    neighbors = NeighborOptions(positives="all", weights="affine", space="input")
    one, given = learner(loss=supcon, neighbors=neighbors), clips()
    targets = {}
    for modality in CONTEXT.modalities:
        unit = F.normalize(given[modality], dim=1)
        weights = (1 + unit @ unit.T) / 2
        targets[modality] = weights / weights.sum(1, keepdim=True)
    assert cost(one, given) == pytest.approx(soft_targets(one, given, targets), abs=1e-5)


@pytest.fixture
def short_teacher(monkeypatch):
    monkeypatch.setattr("aadml.methods.pairwise.teacher.TRAINING", Training(epochs=2, batch=20, optimizer="rmsprop"))


def test_a_teacher_knows_the_training_clips_alone_and_finds_the_neighbors(short_teacher):
    one, given = learner(neighbors=NeighborOptions(positives="own", k=2, space="dcca")), clips(40)
    one.before_epoch(given, Epoch("train", 0, 2))
    space = dcca_space(given, seed=CONTEXT.seed)
    for modality, vectors in space.items():
        found = one.matching.neighbors.among(torch.arange(40), modality, torch.arange(40)).mask
        scores = F.normalize(vectors.double(), dim=1) @ F.normalize(vectors.double(), dim=1).T
        for clip, row in enumerate(scores):
            row[clip] = -2
            assert set(found[clip].nonzero()[:, 0].tolist()) == set(row.topk(2).indices.tolist())
    before = one.matching.neighbors.among(torch.arange(40), "audio", torch.arange(40)).mask
    one.before_epoch(given, Epoch("train", 1, 2))
    assert torch.equal(before, one.matching.neighbors.among(torch.arange(40), "audio", torch.arange(40)).mask)


def test_a_teacher_is_drawn_by_its_seed_and_disturbs_no_other_draw(short_teacher):
    given = clips(40)
    torch.manual_seed(5)
    first = dcca_space(given, seed=1)
    drawn = torch.rand(3)
    torch.manual_seed(5)
    assert torch.equal(drawn, torch.rand(3))
    assert torch.equal(first["audio"], dcca_space(given, seed=1)["audio"])
    assert not torch.equal(first["audio"], dcca_space(given, seed=2)["audio"])


def test_a_teacher_of_three_modalities_is_refused_before_anything_is_trained():
    context = Context({"audio": 5, "visual": 7, "text": 3}, 0)
    with pytest.raises(InputError, match="dcca learns from two modalities, not audio, visual, text"):
        METHODS["pairs"](context, Training(), neighbors=NeighborOptions(positives="own", space="dcca"))


def test_a_bank_without_a_graph_leaves_the_own_partner_the_only_positive():
    one, given = learner(neighbors=NeighborOptions(candidates="bank")), clips()
    none = torch.zeros(9, 9, dtype=torch.bool)
    assert cost(one, given) == pytest.approx(expected(one, given, none), abs=1e-5)


@pytest.mark.parametrize("candidates", ["batch", "bank"])
def test_a_batch_is_compared_with_itself_or_with_all_clips(candidates):
    one, given, rows = learner(neighbors=NeighborOptions(candidates=candidates)), clips(), torch.tensor([1, 4, 6, 7])
    one.before_epoch(given, Epoch("train", 0, 1))
    part = given.select(rows)
    some = Batch(part.features, part.labels, rows, torch.Generator().manual_seed(2), Epoch("train", 0, 1))
    audio, visual = (one.embed(given[m], m) for m in CONTEXT.modalities)
    columns, own = (rows, torch.arange(4)) if candidates == "batch" else (torch.arange(9), rows)
    scores = [one.matching.log_scale.exp() * a[rows] @ b[columns].T for a, b in ((audio, visual), (visual, audio))]
    wanted = sum(float(F.cross_entropy(found.detach(), own)) for found in scores) / 2
    assert float(one.players()["all"].loss(some)["loss"].detach()) == pytest.approx(wanted, abs=1e-5)


@pytest.mark.parametrize(
    "options",
    [
        {"neighbors": NeighborOptions(positives="own", k=2)},
        {"neighbors": NeighborOptions(positives="agreeing", k=2, candidates="bank")},
        {"neighbors": NeighborOptions(positives="either", k=2, control="random"), "loss": "triplet"},
        {
            "neighbors": NeighborOptions(positives="all", weights="softmax"),
            "loss": "supcon",
            "directions": ["both-both"],
        },
        {"proxy": {"name": "anchor-aware", "k": 2}},
        {"proxy": {"name": "anchor-aware", "k": 2, "live": True, "graph_modality": "agreeing"}},
        {
            "proxy": {"name": "anchor-aware", "k": 2, "aa_on": "anchor"},
            "neighbors": NeighborOptions(positives="own", k=2, candidates="bank"),
        },
    ],
)
def test_neighbors_and_proxies_change_what_is_learned(options):
    given = clips()
    one = learner(**options)
    found = loss_of(one, given)
    found.backward()
    assert torch.isfinite(found)
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in one.encoders.parameters())
    plain = learner(**{"loss": options.get("loss", LOSS), "directions": options.get("directions", ["all"])})
    assert float(found.detach()) != pytest.approx(cost(plain, given))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"neighbors": NeighborOptions(positives="own", weights="affine"), "loss": "triplet"},
            "weights all positives equally",
        ),
        ({"neighbors": NeighborOptions(candidates="bank"), "proxy": "anchor-aware"}, "set proxy.aa_on to anchor"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        learner(**options)


def test_more_neighbors_than_clips_are_refused():
    with pytest.raises(InputError, match=r"neighbors\.k: 9 .* 8 at most"):
        cost(learner(neighbors=NeighborOptions(positives="own", k=9)), clips())


class Interrupted(Session):
    """Dies after two epochs, and goes on where it was."""

    state = None

    def save(self, checkpoint):
        self.state = Checkpoint({k: v.clone() for k, v in checkpoint.tensors.items()}, dict(checkpoint.facts))
        if checkpoint.facts["epochs_done"] == 2:
            raise KeyboardInterrupt

    def resume(self):
        return self.state


@pytest.mark.parametrize("control", ["none", "random"])
def test_a_training_with_neighbors_goes_on_to_the_same_bytes(control):
    def built():
        torch.manual_seed(0)
        neighbors = NeighborOptions(positives="either", k=2, control=control, candidates="bank")
        settings = Training(epochs=4, batch=4, learning_rate=0.01)
        return METHODS["pairs"](CONTEXT, settings, network=NETWORK, dimension=4, loss=LOSS, neighbors=neighbors)

    whole, begun, later, session = built(), built(), built(), Interrupted()
    whole.fit(clips(), clips())
    with pytest.raises(KeyboardInterrupt):
        begun.fit(clips(), clips(), session)
    later.fit(clips(), clips(), session)
    assert all(torch.equal(value, later.state()[key]) for key, value in whole.state().items())
