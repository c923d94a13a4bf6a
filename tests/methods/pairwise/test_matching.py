"""Positives, negatives and candidates of a loss of pairs."""

from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

from aadml.comparison.clips import Clips
from aadml.feature_extraction.ground.consent import trusting
from aadml.feature_extraction.ground.errors import InputError
from aadml.losses import TRAINS_WITHOUT_NEGATIVES
from aadml.methods import METHODS
from aadml.methods.pairwise.matching import same_clips
from aadml.methods.training.learner import Batch, Epoch
from aadml.methods.training.settings import Training
from aadml.objective.left_out import rebuilding
from aadml.objective.neighbor_positives import NeighborOptions
from tests.methods.pairwise.pairs_on_features import (
    CONTEXT,
    LOSS,
    clips,
    cost,
    expected,
    learner,
    loss_of,
    soft_targets,
)
from tests.sections import typed


class OfModule(torch.nn.Module):
    def __init__(self, *, temperature: float = 0.1):
        super().__init__()


def test_clips_that_share_their_features_or_ids_are_not_each_others_negatives():
    features = {m: values.clone() for m, values in clips().features.items()}
    features["audio"][4] = features["audio"][2]
    features["visual"][7] = features["visual"][2]
    given = Clips.of(None, ids=["a", "b", "c", "d", "e", "f", "d", "h", "i"], **features)
    assert same_clips(given)[[2, 4, 7]].unique().numel() == 1
    assert same_clips(given).tolist() == [0, 1, 2, 3, 2, 4, 3, 2, 5]
    masked = torch.zeros(9, 9, dtype=torch.bool)
    for row, column in [(2, 4), (2, 7), (4, 7), (3, 6)]:
        masked[row, column] = masked[column, row] = True
    one = learner()
    assert cost(one, given) == pytest.approx(expected(one, given, masked), abs=1e-5)


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


@pytest.mark.parametrize("directions", [["all"], ["both-both"]])
@pytest.mark.parametrize("loss", [*TRAINS_WITHOUT_NEGATIVES, {"name": "n-pair", "multi_positive": True, "l2": 0.0}])
def test_losses_whose_positives_compete_train_when_all_clips_are_positives(loss, directions):
    one = learner(loss=loss, neighbors=NeighborOptions(positives="all", weights="affine"), directions=directions)
    loss_of(one, clips()).backward()
    assert all(p.grad.abs().max() > 1e-4 for p in one.encoders.parameters())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"neighbors": NeighborOptions(positives="own", weights="affine"), "loss": "triplet"},
            "weights all positives equally; set neighbors.weights to equal, or choose a loss from nt-xent",
        ),
        (
            {"neighbors": NeighborOptions(positives="all", weights="affine"), "loss": "triplet"},
            "weights all positives equally; choose a loss from supcon, cross-clr, dsl$",
        ),
        (
            {"neighbors": NeighborOptions(positives="all", weights="affine")},
            "leaves no negatives, but the loss nt-xent .* choose a loss from supcon, cross-clr, dsl$",
        ),
        (
            {"neighbors": NeighborOptions(positives="all", weights="softmax"), "loss": "n-pair"},
            "leaves no negatives, but the loss n-pair .* dsl, or set loss.multi_positive to true$",
        ),
        ({"loss": {"name": "nt-xent", "temperature": 0.001}}, r"loss\.temperature is 0\.001, .* from 0\.01 to 1"),
        ({"loss": f"{__name__}:OfModule"}, "the loss is an nn.Module"),
        ({"neighbors": NeighborOptions(candidates="bank"), "proxy": "anchor-aware"}, "set proxy.aa_on to anchor"),
        *(
            (
                {"neighbors": NeighborOptions(candidates="bank"), "proxy": proxy},
                "the proxy appends further candidates; choose another proxy",
            )
            for proxy in ("expansion", "memory")
        ),
        *(
            (
                {"neighbors": NeighborOptions(positives="all", weights="affine"), "loss": "supcon", "proxy": proxy},
                "the proxy appends candidates, which have no weights; choose another proxy",
            )
            for proxy in ("expansion", "memory")
        ),
    ],
)
def test_options_that_do_not_go_together_are_refused_but_saved_models_with_them_are_rebuilt(options, message):
    with trusting(), pytest.raises(InputError, match=message):
        learner(**options)
    with trusting(), rebuilding():
        learner(**options)


def test_more_neighbors_than_clips_are_refused():
    with pytest.raises(InputError, match=r"neighbors\.k is 9, .* at most 8"):
        cost(learner(neighbors=NeighborOptions(positives="own", k=9)), clips())


@pytest.mark.parametrize(("loss", "needs"), [("daml", "features"), ("hdml", "features"), ("proxy-nca", "classes")])
def test_a_loss_that_matching_does_not_train_is_refused_but_saved_models_with_it_are_rebuilt(loss, needs):
    context = replace(CONTEXT, classes=3)
    for method in ("pairs", "few-labels"):
        with pytest.raises(InputError, match=f"{loss} .*{needs}"):
            METHODS[method](context, Training(), **typed(loss=loss))
    with rebuilding():
        METHODS["pairs"](context, Training(), **typed(loss=loss))
