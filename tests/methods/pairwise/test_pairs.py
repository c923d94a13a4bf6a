"""Pairs: the symmetric contrastive loss of two small networks, its temperature learned, duplicates no negatives."""

from dataclasses import replace

import pytest
import torch

from aadml.comparison.clips import Clips
from aadml.methods import METHODS
from aadml.methods.training.loop import train
from aadml.methods.training.optimization import Optimization
from aadml.methods.training.session import Checkpoint, Session
from aadml.methods.training.settings import Training
from aadml.objective.neighbor_positives import NeighborOptions
from tests.methods.pairwise.pairs_on_features import (
    CONTEXT,
    EMBEDDING,
    LOSS,
    NETWORK,
    clips,
    cost,
    expected,
    learner,
    loss_of,
)


def test_the_loss_is_cross_entropy_of_pairs_both_ways():
    one, given = learner(), clips()
    none = torch.zeros(9, 9, dtype=torch.bool)
    assert cost(one, given) == pytest.approx(expected(one, given, none), abs=1e-5)
    assert float(one.matching.log_scale.detach().exp()) == pytest.approx(10)


def test_the_temperature_is_learned_where_the_loss_has_one():
    one, given = learner(), clips()
    loss_of(one, given).backward()
    assert float(one.matching.log_scale.grad.abs()) > 0
    assert learner(loss="triplet").matching.log_scale is None


def test_a_running_average_of_the_networks_embeds():
    one, plain, given = learner(embedding=replace(EMBEDDING, average=0.75)), learner(), clips()
    before = one.embed(given["audio"], "audio")
    assert torch.equal(before, plain.embed(given["audio"], "audio"))
    assert not any(parameter.requires_grad for parameter in one.averaged.parameters())
    assert {id(p) for p in one.players()["all"].parameters}.isdisjoint(map(id, one.averaged.parameters()))


@pytest.mark.parametrize("valid", [clips(), clips().select([])])
def test_the_average_of_the_networks_takes_in_every_step_once(monkeypatch, valid):
    left, step = [], Optimization.step

    def followed(*arguments, **options):
        parts = step(*arguments, **options)
        left.append([parameter.detach().clone() for parameter in one.encoders.parameters()])
        return parts

    one = learner(embedding=replace(EMBEDDING, average=0.75))
    expected = [parameter.detach().clone() for parameter in one.encoders.parameters()]
    monkeypatch.setattr(Optimization, "step", followed)
    settings = Training(epochs=2, batch=3, learning_rate=0.1, select="last")
    train(one, clips(), valid, settings, Session(), seed=0)
    assert len(left) == 6
    for number, weights in enumerate(left, 1):
        decay = min(0.75, (1 + number) / (10 + number))
        expected = [decay * mean + (1 - decay) * weight for mean, weight in zip(expected, weights, strict=True)]
    for mean, kept in zip(expected, one.averaged.parameters(), strict=True):
        torch.testing.assert_close(kept, mean)


@pytest.mark.slow
def test_training_finds_the_partners_of_clips_that_share_what_they_show():
    generator = torch.Generator().manual_seed(3)
    shown = torch.randn(300, 3, generator=generator)
    features = {m: shown @ torch.randn(3, d, generator=generator) for m, d in CONTEXT.dimensions.items()}
    given = Clips.of(None, **features)
    train, valid = given.select(torch.arange(200)), given.select(torch.arange(200, 300))
    settings = Training(epochs=30, batch=50, learning_rate=0.01, criterion="recall@10")
    method = METHODS["pairs"](CONTEXT, settings, network=NETWORK, embedding=EMBEDDING, loss=LOSS)
    method.fit(train, valid)
    ranks = (method.embed(valid["audio"], "audio") @ method.embed(valid["visual"], "visual").T).argsort(1)
    found = (ranks[:, -10:] == torch.arange(100)[:, None]).any(1).float().mean()
    assert float(found) > 0.6  # chance is 0.1


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
        sections = {"network": NETWORK, "embedding": EMBEDDING, "loss": LOSS, "neighbors": neighbors}
        return METHODS["pairs"](CONTEXT, settings, **sections)

    whole, begun, later, session = built(), built(), built(), Interrupted()
    whole.fit(clips(), clips())
    with pytest.raises(KeyboardInterrupt):
        begun.fit(clips(), clips(), session)
    later.fit(clips(), clips(), session)
    assert all(torch.equal(value, later.state()[key]) for key, value in whole.state().items())
