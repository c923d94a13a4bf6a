"""TLCA: two stages as data, semi-hard and then hard triplets as loops."""

from functools import partial

import pytest
import torch

from aadml.comparison.interpolation import interpolated
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.options import OptionValues
from aadml.feature_extraction.ground.validation import checked_options
from aadml.losses.label_losses import row_norm
from aadml.methods import METHODS
from aadml.methods.method import Context
from aadml.methods.networks import NetworkOptions
from aadml.methods.training.learner import Batch, Epoch
from aadml.methods.training.settings import Training
from tests.sections import typed

CONTEXT = Context({"audio": 5, "visual": 7}, 3)


def built(**options):
    torch.manual_seed(0)
    return METHODS["tlca"](
        CONTEXT, Training(), **typed(**{"network": NetworkOptions(hidden=(6,), dropout=0.0)} | options)
    )


def batch(stage, b=9):
    generator = torch.Generator().manual_seed(1)
    features = {m: 3 * torch.randn(b, d, generator=generator) for m, d in CONTEXT.dimensions.items()}
    return Batch(features, torch.arange(b) % 3, torch.arange(b), generator, Epoch(stage, 0, 1))


def parts(learner, given):
    (player,) = learner.players().values()
    return {name: value.detach() for name, value in player.loss(given).items()}


def test_epochs_are_divided_among_two_stages():
    stages = built(first_share=0.3).learner.stages(10)
    assert [(s.name, s.epochs, s.start_from_best) for s in stages] == [("semi-hard", 3, True), ("hard", 7, True)]
    assert [s.name for s in built(first_share=0.0).learner.stages(10)] == ["hard"]
    assert [s.name for s in built(first_share=1.0).learner.stages(10)] == ["semi-hard"]
    with pytest.raises(InputError, match=r"first_share is 2.0; pass a number from 0"):
        checked_options(METHODS["tlca"], OptionValues(first_share=2.0), "method")


def distances(learner, given):
    audio, visual = (learner.encoders[m](given.features[m]).detach().double() for m in CONTEXT.modalities)
    return [(x[:, None] - y[None]).square().sum(2) for x, y in ((audio, visual), (visual, audio))]


def test_the_first_stage_counts_negatives_farther_than_the_positive_by_less_than_the_margin():
    """With one positive an anchor, drawing it leaves no choice."""
    learner, given = built(margin=4.0).learner, batch("semi-hard", b=3)
    costs = []
    for d in distances(learner, given):
        terms = [d[i, i] - d[i, n] + 4.0 for i in range(3) for n in range(3) if d[i, i] < d[i, n] < d[i, i] + 4.0]
        costs.append(sum(terms) / max(len(terms), 1))
    assert any(cost > 0 for cost in costs)
    torch.testing.assert_close(parts(learner, given)["metric_loss"].double(), sum(costs) / 2, rtol=1e-5, atol=1e-5)


def test_the_second_stage_without_points_is_the_hardest_triplet_of_each_anchor(monkeypatch):
    monkeypatch.setattr("aadml.methods.label_space.tlca.SHARES", ())
    learner, given = built(margin=1.2).learner, batch("hard")
    same = given.labels[:, None] == given.labels[None]
    costs = []
    for d in distances(learner, given):
        terms = [max(d[i][same[i]]) - min(d[i][~same[i]]) + 1.2 for i in range(9)]
        active = [term for term in terms if term > 0]
        costs.append(sum(active) / max(len(active), 1))
    torch.testing.assert_close(parts(learner, given)["metric_loss"].double(), sum(costs) / 2, rtol=1e-5, atol=1e-5)


def test_points_toward_negatives_bring_them_nearer(monkeypatch):
    toward = partial(interpolated, lines=("anchor-negative",))
    monkeypatch.setattr("aadml.methods.label_space.tlca.interpolated", toward)
    learner, given = built(margin=1.2).learner, batch("hard")
    same = given.labels[:, None] == given.labels[None]
    costs = []
    for d in distances(learner, given):
        terms = [max(d[i][same[i]]) - min(d[i][~same[i]]) / 16 + 1.2 for i in range(9)]
        active = [term for term in terms if term > 0]
        costs.append(sum(active) / max(len(active), 1))
    torch.testing.assert_close(parts(learner, given)["metric_loss"].double(), sum(costs) / 2, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("stage", ["semi-hard", "hard"])
def test_the_label_loss_is_kept_in_both_stages(stage):
    learner, given = built(label_loss={"name": "row-norm", "weight": 2.0}).learner, batch(stage)
    found = parts(learner, given)
    label = sum(row_norm(learner.embed(given.features[m], m), given.labels) for m in CONTEXT.modalities)
    torch.testing.assert_close(found["loss"], 2 * label.detach() + found["metric_loss"])
