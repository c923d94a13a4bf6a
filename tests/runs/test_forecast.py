import re

import pytest
import torch

from aadml.comparison import Terms
from aadml.configuration.config import resolve
from aadml.configuration.files import open_config
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file import write_features
from aadml.losses.triplet import triplet
from aadml.methods import METHODS
from aadml.methods.method import Context
from aadml.methods.networks import Network
from aadml.methods.training.settings import Training
from aadml.runs.forecast import forecast, step_memory
from aadml.runs.train import train_into
from tests.sections import typed

CONTEXT = Context({"audio": 5, "visual": 6}, 4)


def built(batch, **sections):
    return METHODS["aadml"](CONTEXT, Training(batch=batch), network=Network(hidden=(8,)), **typed(**sections))


def test_a_large_batch_is_told_with_its_memory():
    sentence = forecast(built(4000), 4000, 4)
    assert int(re.search(r"about ([0-9,]+) MiB", sentence)[1].replace(",", "")) > 256
    assert "batch 4000" in sentence


def test_a_side_of_both_modalities_needs_the_memory_of_a_batch_of_twice_as_many():
    def memory(batch, directions):
        return re.search(r"about ([0-9,]+) MiB", forecast(built(batch, directions=directions), 20_000, 4))[1]

    assert memory(8000, ["both-both"]) == memory(16_000, ["audio-visual"]) != memory(8000, ["audio-visual"])


@pytest.mark.parametrize(
    "method",
    [built(50), built(4000, loss={"name": "triplet", "weight": 0.0}), METHODS["cca"](CONTEXT, Training())],
    ids=["small", "without metric loss", "closed form"],
)
def test_a_small_batch_or_no_metric_loss_is_not_told(method):
    assert forecast(method, 4000, 4) is None


@pytest.mark.parametrize("name", ["daml", "hdml"])
def test_measuring_leaves_the_method_unchanged(name):
    method = built(4000, loss={"name": name, "reduction": "mean"})
    before = {key: value.clone() for key, value in method.state().items()}
    assert forecast(method, 4000, 4)
    assert all(torch.equal(value, before[key]) for key, value in method.state().items())
    assert all(parameter.grad is None for parameter in method.learner.parameters())


def test_nothing_is_measured_without_on_note(tmp_path, monkeypatch):
    write_features(tmp_path / "toy.h5", synthetic(classes=3, train=30, valid=6, test=9, dimensions=(4, 5)))
    small = {"network": {"hidden": [4]}, "training": {"epochs": 1, "batch": 20}, "data": str(tmp_path / "toy.h5")}
    config = resolve({**open_config("aadml").values, **small})
    calls, notes = [], []
    monkeypatch.setattr(
        "aadml.runs.config_warnings.forecast", lambda *arguments: calls.append(arguments) or "a forecast"
    )
    silent = train_into(config, tmp_path / "silent")
    assert calls == []
    noted = train_into(config, tmp_path / "told", on_note=notes.append)
    assert len(calls) == 1
    assert "a forecast" in notes
    assert noted.evaluation["map_mean"] == silent.evaluation["map_mean"]


def test_the_memory_grows_with_the_square_of_the_batch():
    small, large = (step_memory(triplet, batch, 8) for batch in (512, 2048))
    assert large == pytest.approx(16 * small, rel=1e-3)
    assert 2 * 4 * 512**2 < small < 20 * 4 * 512**2


@pytest.mark.parametrize(("batch", "growth"), [(100, 1), (256, 1), (512, 4)])
def test_the_memory_of_a_loss_is_that_of_its_graph_and_of_four_matrices_of_scores(batch, growth):
    calls = []

    def loss(comparison):
        calls.append(comparison)
        total = comparison.anchors.exp().sum(1)  # the graph holds the result of exp alone
        return Terms(total, torch.ones(len(total)), torch.ones(len(total)))

    assert step_memory(loss, batch, 8) == growth * min(batch, 256) * 8 * 4 + 4 * 4 * batch * batch
    (comparison,) = calls
    assert comparison.anchors.shape == comparison.candidates.shape == (min(batch, 256), 8)
    assert not comparison.within.any()
    assert float(comparison.positives.float().mean()) == pytest.approx(0.1, abs=0.01)
    step_memory(loss, 60, 8, classes=3, features=7)
    assert (calls[1].positives.sum(1) == 20).all()
    assert calls[1].anchor_features.shape == calls[1].candidate_features.shape == (60, 7)
    assert calls[1].candidate_head(calls[1].candidate_features).shape == (60, 8)
