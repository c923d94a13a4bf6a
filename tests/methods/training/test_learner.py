"""Stages in two parts, batches of rows, cached vectors, and buffers that get the size of a loaded state."""

import pickle
from dataclasses import replace

import pytest
import torch
from torch import nn

from aadml.feature_extraction.ground.errors import InputError
from aadml.methods import METHODS
from aadml.methods.inputs import STANDARD
from aadml.methods.method import Context
from aadml.methods.towers.options import PretrainedOptions
from aadml.methods.towers.tower_learner import TowerLearner
from aadml.methods.training.learner import Epoch, Learner, ResizedBuffers, batch_of, in_two
from aadml.methods.training.settings import Training
from tests.methods.trainings import clips


class Words(ResizedBuffers):
    resized = ("words",)

    def __init__(self, count):
        super().__init__()
        self.register_buffer("words", torch.arange(count))


class OneLayer(Learner):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def embed(self, features, modality):
        return self.layer(features)


def test_epochs_are_divided_in_two_and_a_stage_without_epochs_is_left_out():
    assert [(s.name, s.epochs, s.players) for s in in_two(10, 0.3, ("a", "b"))] == [("a", 3, None), ("b", 7, None)]
    assert [(s.name, s.epochs) for s in in_two(10, 1.0, ("a", "b"))] == [("a", 10)]
    assert [s.players for s in in_two(10, 0.5, ("a", "b"), apart=True)] == [("a",), ("b",)]


def test_a_batch_has_the_features_and_labels_of_its_rows():
    data, rows = clips(12), torch.tensor([7, 2, 11])
    batch = batch_of(data, rows, torch.device("cpu"), torch.Generator(), Epoch("train", 0, 1))
    assert torch.equal(batch.features["audio"], data.matrix("audio")[rows])
    assert torch.equal(batch.labels, data.labels[rows])
    assert torch.equal(batch.index, rows)
    assert batch.present == {}
    assert batch.groups is batch.index


@pytest.mark.parametrize(("method", "name"), [("clip", "loss"), ("bic-net", "loss"), ("dcil", "ranking_loss")])
def test_rows_of_one_clip_are_never_negatives_of_each_other(method, name):
    context, small = Context({"audio": 5, "visual": 5}, 3, clips=6), {"hidden": (6,), "dimension": 8, "dropout": 0.0}
    learner = METHODS[method](context, Training(), **small).learner
    data = replace(clips(6), ids=("a", "b", "a", "b", "a", "c"))
    epoch, generator = Epoch("ranking", 0, 1), torch.Generator()
    batches = [batch_of(data, torch.tensor(rows), learner.device, generator, epoch) for rows in ([2, 0, 4], [0, 1, 2])]
    assert batches[0].groups.tolist() == [0, 0, 0]
    assert batches[1].groups.tolist() == [0, 1, 0]
    same, other = (learner.players()["all"].loss(batch) for batch in batches)
    assert same[name] == 0
    assert other[name] > 0
    if method == "dcil":
        scores = [learner.classifier(learner.embed(values, m)) for m, values in batches[0].features.items()]
        expected = sum(nn.functional.cross_entropy(values, torch.zeros(3, dtype=torch.int64)) for values in scores)
        torch.testing.assert_close(same["instance_loss"], expected)


@pytest.mark.parametrize("method", ["msnsca", "dcca"])
def test_batches_of_one_clip_are_refused_before_training_where_batches_are_normalized(method):
    context, data = Context({"audio": 5, "visual": 5}, 3), clips(4)
    built = METHODS[method](context, Training(batch=20))
    built.check_clips(data)
    with pytest.raises(InputError, match=r"there is 1 training clip with all modalities, but .* at least 2; add"):
        built.check_clips(replace(data, present={"audio": torch.arange(4) < 1}))
    with pytest.raises(InputError, match="there is 1 training clip"):
        built.check_clips(replace(data, drawn_by=("a",) * 4))


def test_a_batch_size_of_one_is_refused_where_batches_are_normalized():
    built = METHODS["msnsca"](Context({"audio": 5, "visual": 5}, 3), Training(batch=1))
    with pytest.raises(InputError, match=r"training.batch is 1, but .* at least 2 clips; set training.batch to 2 or"):
        built.check_clips(clips(4))


def test_buffers_get_the_size_of_the_state_inside_any_module():
    module = nn.ModuleDict({"inner": Words(0)})
    module.load_state_dict(nn.ModuleDict({"inner": Words(5)}).state_dict())
    assert torch.equal(module["inner"].words, torch.arange(5))


def test_cached_vectors_are_dropped_once_weights_may_change():
    learner = TowerLearner(OneLayer(), {}, PretrainedOptions(audio="hf:model"), STANDARD)
    vectors = torch.zeros(1, 2)
    for change in (learner.train, lambda: learner.load_state_dict(learner.state_dict())):
        learner.eval()
        learner._store(vectors, vectors + 1)
        learner.eval()
        assert torch.equal(learner._stored(vectors), vectors + 1)
        change()
        assert learner._stored(vectors) is None


def test_cached_vectors_live_no_longer_than_their_features():
    learner, living = TowerLearner(OneLayer(), {}, PretrainedOptions(audio="hf:model"), STANDARD), torch.zeros(1, 2)
    learner._store(living, living)
    for _ in range(20):
        learner._store(torch.zeros(1, 2), living)
    assert len(learner._cache) <= 2
    assert learner._stored(living) is living
    assert learner._stored(torch.zeros(1, 2)) is None


def test_a_learner_with_cached_vectors_can_be_pickled():
    learner, vectors = TowerLearner(OneLayer(), {}, PretrainedOptions(audio="hf:model"), STANDARD), torch.zeros(1, 2)
    learner._store(vectors, vectors + 1)
    again = pickle.loads(pickle.dumps(learner))
    again._store(vectors, vectors + 2)
    assert (float(learner._stored(vectors)[0, 0]), float(again._stored(vectors)[0, 0])) == (1, 2)
