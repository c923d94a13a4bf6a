"""Entries that break the contract of their registry end in one line with the expected signature."""

import sys

import pytest

LOSS = "define a loss as (comparison, *, options) -> Terms(total) (see docs/extending.md)"
LABEL_LOSS = "define a label loss as (outputs, labels, *, options) -> a scalar Tensor"
SELECTION = "define a selection as (comparison, generator, *, options) -> Comparison(anchors, candidates, "
PROXY = (
    "define a proxy as (dimension, modalities, *, options) -> Proxy with aa_mix, aa_on, check_size, from_bank, "
    "parameters, refresh, remember"
)
METHOD = (
    "define a method as (context, settings, *, options) -> Method with embed, fit, load, state (see docs/extending.md)"
)
READOUT = "define a readout as (*, options) -> list of Readout (not empty, without subclasses)"
METRIC = "define a metric as (ranking, *, options) -> an array with one number for each query (see docs/extending.md)"
PROTOCOL = (
    "define a protocol as an object Protocol(before, mix, correct, keep, metric, needs, trains) (see docs/extending.md)"
)
EXTRACTOR = "define an audio extractor as (*, options) -> Extractor("

WRONG = """
from torch import nn

from aadml.methods.label_space.readouts import Readout


def loss(comparison):
    return comparison.squared_distance.sum()


def triplets(anchors, positives, negatives):
    return anchors


class Loss(nn.Module):
    def forward(self, comparison):
        return None


class TwoArguments(nn.Module):
    def forward(self, anchors, candidates):
        return None


def label_loss(outputs, labels):
    return outputs.sum(1)


def selection(comparison, generator):
    return comparison.positives


class Proxy(nn.Module):
    def __init__(self, dimension, modalities):
        super().__init__()
        self.aa_on, self.aa_mix = "all", 0.5

    def forward(self, embeddings, index, encode=None):
        return embeddings


def method(context, settings):
    return nn.Linear(2, 2)


def fitted(train):
    return train


def readout():
    return "cosine"


class Sharp(Readout):
    def __call__(self, vectors):
        return 5 * vectors


def sharp():
    return [Sharp("posterior", 0.2)]


def none():
    return []


def metric(ranking):
    return 0.5


def extractor():
    return nn.Linear(2, 2)


def described(sound):
    return sound


number = 3
"""


@pytest.fixture
def wrong(tmp_path, monkeypatch, features):
    """Feature file beside a module of wrong entries."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    (features.parent / "wrong_entries.py").write_text(WRONG)
    yield features
    sys.modules.pop("wrong_entries", None)


SMALL = ["--set", "network.hidden=[8]", "--set", "training.batch=20", "--epochs", 1]


@pytest.mark.parametrize(
    ("setting", "fault", "contract"),
    [
        (["--loss", "wrong_entries:loss"], "loss wrong_entries:loss returned a Tensor of shape ()", LOSS),
        (["--loss", "wrong_entries:Loss"], "loss wrong_entries:Loss returned None", LOSS),
        (["--loss", "wrong_entries:triplets"], "loss wrong_entries:triplets takes anchors, positives, negatives", LOSS),
        (["--loss", "wrong_entries:TwoArguments"], "loss wrong_entries:TwoArguments takes anchors, candidates", LOSS),
        (["--loss", "wrong_entries:number"], "loss wrong_entries:number is an int", LOSS),
        (["--set", "label_loss=wrong_entries:label_loss"],
         "label loss wrong_entries:label_loss returned a Tensor of shape (20,)", LABEL_LOSS),
        (["--set", "selection=wrong_entries:selection"],
         "selection wrong_entries:selection returned a Tensor of shape (20, 20)", SELECTION),
        (["--set", "proxy=wrong_entries:Proxy"],
         "proxy wrong_entries:Proxy returned a Proxy without check_size, from_bank, refresh, remember", PROXY),
        (["--set", "proxy=wrong_entries:readout"], "proxy wrong_entries:readout takes no positional arguments", PROXY),
        (["--set", "readout=wrong_entries:readout"], "readout wrong_entries:readout returned a str", READOUT),
        (["--set", "readout=wrong_entries:sharp"], "readout wrong_entries:sharp returned a list", READOUT),
        (["--set", "readout=wrong_entries:none"], "readout wrong_entries:none returned a list", READOUT),
    ],
)  # fmt: skip
def test_a_wrong_part_of_a_training_is_one_line(aadml, wrong, tmp_path, setting, fault, contract):
    code, _, err = aadml("train", "--data", wrong, *setting, *SMALL, "--runs", tmp_path / "runs")
    assert code == 2, err
    assert f"{fault}; {contract}" in err.strip().splitlines()[-1]
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("name", "fault"),
    [("method", "method wrong_entries:method returned a Linear without embed, fit, load, state"),
     ("fitted", "method wrong_entries:fitted takes train")],
)  # fmt: skip
def test_a_wrong_method_is_one_line(aadml, wrong, tmp_path, name, fault):
    code, _, err = aadml("train", "--data", wrong, "--method", f"wrong_entries:{name}", "--runs", tmp_path / "runs")
    assert (code, err) == (2, f"{fault}; {METHOD}")


def test_a_wrong_metric_or_protocol_is_one_line(aadml, wrong, tmp_path):
    code, out, err = aadml("train", "--data", wrong, "--method", "random", "--runs", tmp_path / "runs")
    assert code == 0, err
    run = out.strip().splitlines()[-1]
    code, _, err = aadml("evaluate", run, "--metric", "wrong_entries:metric")
    assert (code, err) == (2, f"metric wrong_entries:metric returned a ndarray of shape (); {METRIC}")
    code, _, err = aadml("evaluate", run, "--protocol", "wrong_entries:loss")
    assert (code, err) == (2, f"protocol wrong_entries:loss is a function; {PROTOCOL}")


@pytest.mark.parametrize(
    ("name", "fault"),
    [("extractor", "returned a Linear"), ("described", "takes sound"), ("number", "is an int")],
)
def test_a_wrong_extractor_is_one_line(aadml, tmp_path, monkeypatch, name, fault):
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setitem(sys.modules, "wrong_entries", None)
    del sys.modules["wrong_entries"]
    (tmp_path / "wrong_entries.py").write_text(WRONG)
    (tmp_path / "manifest.csv").write_text("id,media,label,split\na,absent.wav,dog,train\n")
    code, _, err = aadml(
        "extract", tmp_path / "manifest.csv", "-o", tmp_path / "out.h5", "--audio", f"wrong_entries:{name}"
    )
    assert code == 2, err
    assert err.startswith(f"audio extractor wrong_entries:{name} {fault}; {EXTRACTOR}")
    assert "\n" not in err.strip()
