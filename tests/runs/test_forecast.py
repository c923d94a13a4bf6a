import re

import pytest
import torch

from aadml.configuration.config import resolve
from aadml.configuration.files import read_yaml
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file import write_features
from aadml.methods import METHODS
from aadml.methods.method import Context
from aadml.methods.networks import Network
from aadml.methods.training.settings import Training
from aadml.runs.forecast import forecast
from aadml.runs.train import train_into
from tests.sections import typed

CONTEXT = Context({"audio": 5, "visual": 6}, 4)


def built(epochs, **sections):
    return METHODS["aadml"](
        CONTEXT, Training(epochs=epochs, batch=50), network=Network(hidden=(8,)), **typed(**sections)
    )


def test_a_long_training_is_foretold_with_steps_time_and_memory():
    told = forecast(built(100_000_000), 120, 4)
    assert "300,000,000 steps" in told
    assert "MiB" in told
    assert "batch 50" in told


def test_a_side_of_both_modalities_is_foretold_as_a_batch_of_twice_as_many():
    def memory(batch, directions):
        settings = Training(epochs=100_000_000, batch=batch)
        method = METHODS["aadml"](CONTEXT, settings, network=Network(hidden=(8,)), directions=directions)
        return re.search(r"and ([0-9,]+) MiB", forecast(method, 4000, 4))[1]

    assert memory(1000, ["both-both"]) == memory(2000, ["audio-visual"]) != memory(1000, ["audio-visual"])


@pytest.mark.parametrize(
    "method",
    [built(1), built(100_000_000, loss={"name": "triplet", "weight": 0.0}), METHODS["cca"](CONTEXT, Training())],
    ids=["short", "without metric loss", "closed form"],
)
def test_what_is_short_or_has_no_metric_loss_is_not(method):
    assert forecast(method, 120, 4) is None


@pytest.mark.parametrize("name", ["daml", "hdml"])
def test_what_is_foretold_leaves_the_method_as_it_was(name):
    method = built(100_000_000, loss={"name": name, "reduction": "mean"})
    before = {key: value.clone() for key, value in method.state().items()}
    assert forecast(method, 120, 4)
    assert all(torch.equal(value, before[key]) for key, value in method.state().items())
    assert all(one.grad is None for one in method.learner.parameters())


def test_nothing_is_foretold_where_nobody_listens(tmp_path, monkeypatch):
    write_features(tmp_path / "toy.h5", synthetic(classes=3, train=30, valid=6, test=9, dimensions=(4, 5)))
    small = {"network": {"hidden": [4]}, "training": {"epochs": 1, "batch": 20}, "data": str(tmp_path / "toy.h5")}
    config = resolve({**read_yaml("aadml"), **small})
    heard, notes = [], []
    monkeypatch.setattr("aadml.runs.config_warnings.forecast", lambda *given: heard.append(given) or "a forecast")
    silent = train_into(config, tmp_path / "silent")
    assert heard == []
    told = train_into(config, tmp_path / "told", on_note=notes.append)
    assert len(heard) == 1
    assert "a forecast" in notes
    assert told.evaluation["map_mean"] == silent.evaluation["map_mean"]
