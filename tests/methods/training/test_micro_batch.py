"""Gradient accumulation that is exact for losses of a whole batch: micro batches of the encoders (GradCache)."""

import pytest
import torch

from aadml.comparison.clips import Clips
from aadml.configuration.from_arguments import assemble
from aadml.data import to_splits
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.ground.errors import InputError
from aadml.losses import LOSSES
from aadml.methods.networks import layers
from aadml.methods.training.learner import Batch, Epoch
from aadml.methods.training.precision import passed_in_parts
from aadml.objective.recipes import RECIPES
from aadml.runs.prepare import untrained_model

SPLITS = to_splits(synthetic(classes=3, train=60, valid=15, test=15, dimensions=(6, 8), difficulty=0.2))
EVERY = sorted({*LOSSES, *RECIPES, "aa-triplet"})


def learner_of(loss, dropout=0.0, method="aadml"):
    settings = {} if method != "aadml" else {"network.hidden": [9, 7], "network.dropout": dropout}
    given = {"loss": loss} if method == "aadml" else {}
    config = assemble(method=method, settings=settings, **given)
    model = untrained_model(config, SPLITS, torch.device("cpu"))
    learner, train = model.method.learner.double(), model.scaling.clips(SPLITS.train)
    train = Clips.of(train.labels, **{m: train.matrix(m) for m in train.modalities})
    return learner, train


def gradients(learner, train, micro_batch):
    """Loss and gradients of all players on one batch of all clips, from the same draws."""
    features = {m: train.matrix(m).double() for m in train.modalities}
    found, before = [], {name: value.clone() for name, value in learner.state_dict().items()}
    with passed_in_parts(micro_batch, learner):
        for player in learner.players().values():
            torch.manual_seed(0)
            draws = torch.Generator().manual_seed(1)
            loss = player.loss(Batch(features, train.labels, torch.arange(len(train)), draws, Epoch("train", 0, 1)))
            found += [loss["loss"], *torch.autograd.grad(loss["loss"], player.parameters, allow_unused=True)]
    learner.load_state_dict(before)  # losses that draw count their calls
    return found


def prepared(loss, **options):
    learner, train = learner_of(loss, **options)
    learner.eval()
    torch.manual_seed(0)
    learner.float().before_epoch(train, Epoch(learner.stages(10)[-1].name, 0, 1))
    learner.double().train()
    return learner, train


def assert_same(ours, expected, tolerance):
    assert [one is None for one in ours] == [one is None for one in expected]
    for one, other in zip(ours, expected, strict=True):
        assert one is None or torch.allclose(one, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("loss", EVERY)
def test_gradients_are_those_of_the_whole_batch_for_every_loss(loss):
    learner, train = prepared(loss)
    whole = gradients(learner, train, 0)
    assert any(one is not None and one.any() for one in whole[1:])
    for micro_batch in (7, 60):
        assert_same(gradients(learner, train, micro_batch), whole, 1e-9)


@pytest.mark.parametrize("loss", ["triplet", "supcon", "aa-triplet"])
def test_both_passes_of_a_part_drop_the_same_units(monkeypatch, loss):
    learner, train = prepared(loss, dropout=0.5)
    cached = gradients(learner, train, 16)
    monkeypatch.setattr("aadml.methods.networks.checkpoint", lambda passed, part, use_reentrant: passed(part))
    kept = gradients(learner, train, 16)
    assert_same(cached, kept, 1e-12)
    assert not torch.allclose(cached[0], gradients(learner, train, 13)[0])  # other parts, other masks


def test_what_stands_between_layers_is_kept_for_a_part_alone():
    network, inputs, saved = layers((4, 50, 50, 3), activation="relu", dropout=0.2), torch.randn(64, 4), []
    network.rows_at_once = 8
    with torch.autograd.graph.saved_tensors_hooks(lambda one: saved.append(one.numel()) or one, lambda one: one):
        outputs = network(inputs)
    assert sum(saved) < 64 * 50
    outputs.sum().backward()


def test_outside_training_all_clips_pass_at_once():
    network = layers((4, 5, 3))
    network.rows_at_once = 2
    inputs = torch.randn(6, 4)
    with torch.no_grad():
        expected = network(inputs)
    assert torch.equal(network.eval()(inputs), expected)


def test_methods_whose_networks_take_a_batch_whole_refuse():
    with (
        pytest.raises(InputError, match=r"training.micro_batch: .* choose 0"),
        passed_in_parts(8, torch.nn.Linear(2, 2)),
    ):
        pass


def test_one_of_several_processes_refuses(monkeypatch):
    monkeypatch.setattr("aadml.methods.training.precision.group.count", lambda: 2)
    with pytest.raises(InputError, match="several processes"), passed_in_parts(8, layers((2, 3))):
        pass
