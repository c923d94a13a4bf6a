"""Training logs how much of the metric loss's gradient reaches the encoders, and warns of next to none."""

import pytest
import torch

from aadml.comparison.clips import Clips
from aadml.configuration.config import resolve
from aadml.configuration.files import open_config
from aadml.configuration.overrides import with_setting
from aadml.methods.label_space.aadml import LabelSpaceLearner
from aadml.methods.method import Context
from aadml.methods.training.session import Session
from aadml.model.files import build_method

PAPERS = ("paper_r1", "paper_r3_live", "paper_r3_detached", "paper_r5")


def clips(count, seed):
    random = torch.Generator().manual_seed(seed)
    labels = torch.arange(count) % 4
    features = {m: torch.randn(count, d, generator=random) + labels[:, None] for m, d in (("audio", 6), ("visual", 8))}
    return Clips(features, labels, tuple(f"{seed} {i}" for i in range(count)), tuple("abcd"))


def trained(values, epochs=2):
    for key, value in {"network.hidden": [16, 16], "training.batch": 40, "training.epochs": epochs}.items():
        values = with_setting(values, key, value)
    config = resolve(values)
    torch.manual_seed(0)
    context = Context({"audio": 6, "visual": 8}, 4)
    method = build_method("aadml", config.arguments(), config.training, context)
    session = Session()
    method.fit(clips(80, 0), clips(40, 1), session)
    return method, session


@pytest.mark.parametrize("name", [*PAPERS, "aadml"])
def test_only_detached_neighbors_without_a_residual_keep_the_gradient_from_the_encoders(name):
    _, session = trained(open_config(name).values)
    shares = [record["metric_gradient_share"] for record in session.history]
    assert len(shares) == 2
    warned = [one for one in session.warnings if "of the metric loss's gradient reaches the encoders" in one]
    if name == "paper_r3_detached":
        assert max(shares) < 0.05
        assert len(warned) == 1
    else:
        assert 0.5 < min(shares) <= max(shares) <= 1
        assert not warned


def test_without_proxies_there_is_no_such_figure():
    _, session = trained({"method": "aadml", "loss": "triplet"})
    assert "metric_gradient_share" not in session.history[0]


def test_the_look_is_taken_every_tenth_epoch_and_in_the_last():
    _, session = trained(open_config("aadml").values, epochs=12)
    looked = [record["epoch"] for record in session.history if "metric_gradient_share" in record]
    assert looked == [1, 11, 12]


def test_the_look_is_taken_at_the_first_batch_alone(monkeypatch):
    looks, probe = [], LabelSpaceLearner._probe
    monkeypatch.setattr(LabelSpaceLearner, "_probe", lambda self, parts: looks.append(1) or probe(self, parts))
    _, session = trained(open_config("aadml").values, epochs=2)
    assert [record["steps"] for record in session.history] == [2, 2]
    assert len(looks) == 2


def test_the_look_at_the_gradient_changes_nothing_that_is_trained(monkeypatch):
    method, _ = trained(open_config("aadml").values)
    monkeypatch.setattr(LabelSpaceLearner, "_probe", lambda self, parts: {})
    blind, _ = trained(open_config("aadml").values)
    assert all(torch.equal(value, blind.state()[key]) for key, value in method.state().items())


def test_steps_are_logged_beside_epochs():
    _, session = trained({"method": "aadml", "loss": "triplet"})
    assert [record["steps"] for record in session.history] == [2, 2]
