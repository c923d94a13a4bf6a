"""Warnings before a training name what has no effect."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

import aadml
from aadml.comparison.clips import Clips
from aadml.methods.correlation.cca import cca
from aadml.methods.training.settings import Training
from aadml.runs import config_warnings
from aadml.runs.config_warnings import training_warnings
from tests.configuration.small_configs import full


@pytest.mark.parametrize(
    ("options", "said"),
    [({}, True), ({"settings": {"training.select": "last"}}, False), ({"method": "cca"}, False)],
)
def test_it_is_said_where_no_epoch_can_be_chosen(options, said):
    draw = np.random.default_rng(0).normal
    clips = Clips.of(["a", "b", "c"] * 20, audio=draw(size=(60, 8)), visual=draw(size=(60, 9)))
    settings = {"method.dimension": 2} if "method" in options else {"network.hidden": [4], "training.epochs": 2}
    options = options | {"settings": settings | options.get("settings", {})}
    for valid, expected in ((clips.select(torch.arange(0)), said), (clips, False)):
        heard = []
        aadml.fit(aadml.Splits(clips, valid, clips), on_note=heard.append, **options)
        assert ("there are no validation clips to choose an epoch on, so the last epoch is kept" in heard) == expected


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"training.epochs": 7}, ["training.epochs=7 changes nothing: cca trains without epochs"]),
        (
            {"training.batch": 5, "training.select": "last"},
            ["training.batch=5, training.select=last change nothing: cca trains without epochs"],
        ),
        ({}, []),
    ],
)
@pytest.mark.parametrize("method", ["cca", f"{__name__}:iterative"])
def test_keys_of_the_loop_are_said_to_change_nothing_where_there_is_none(options, said, method):
    draw, heard = np.random.default_rng(0).normal, []
    clips = Clips.of(["a", "b", "c"] * 20, audio=draw(size=(60, 8)), visual=draw(size=(60, 9)))
    aadml.fit(clips, method=method, settings={"method.dimension": 2} | options, on_note=heard.append)
    assert [line for line in heard if "training." in line] == (said if method == "cca" else [])


def iterative(context, settings, *, dimension: int = 4):
    """Build a method from outside aadml, which may have a loop of its own."""
    return cca(context, settings, dimension=dimension)


def test_what_looks_at_validation_clips_is_said_to_change_nothing_where_there_are_none():
    draw = np.random.default_rng(0).normal
    clips = Clips.of(["a", "b", "c"] * 20, audio=draw(size=(60, 8)), visual=draw(size=(60, 9)))
    looking = {"training.patience": 1, "training.schedule": "plateau", "training.criterion": "recall@2"}
    settings = {"network.hidden": [4], "training.epochs": 1, "training.select": "last"}
    said = [f"{key}={value} changes nothing: there are no validation clips" for key, value in looking.items()]
    none = clips.select(torch.arange(0))
    for valid, more, wanted in ((none, looking, said), (none, {}, []), (clips, looking, [])):
        heard = []
        aadml.fit(aadml.Splits(clips, valid, clips), settings=settings | more, loss="triplet", on_note=heard.append)
        assert [line for line in heard if "validation" in line] == wanted


@pytest.mark.parametrize(
    ("space", "positives", "clips", "said"),
    [
        ("dcca", "own", 5, ["a note", "neighbors.space: the DCCA teacher trains on one batch of all 5 clips"]),
        ("dcca", "own", 100_000, ["a note"]),
        ("dcca", "none", 5, ["a note"]),
        ("input", "own", 5, ["a note"]),
        (None, "own", 5, ["a note"]),
    ],
)
def test_a_small_batch_of_the_teacher_is_noted_where_the_teacher_trains(space, positives, clips, said):
    neighbors = None if space is None else SimpleNamespace(space=space, positives=positives)
    train = type("Train", (), {"whole": range(9), "per_epoch": clips, "__len__": lambda self: 9})()
    prepared = SimpleNamespace(
        splits=SimpleNamespace(notes=("a note",), train=train, valid=[1]),
        notes=(),
        config=SimpleNamespace(sections=SimpleNamespace(neighbors=neighbors), training=Training()),
        model=SimpleNamespace(method=SimpleNamespace(takes_missing=True, learner=None)),
    )
    found = training_warnings(prepared)
    assert [line.partition(", as there")[0] for line in found] == said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"audio_weights": "untrained", "audio": "cnn14", "text_weights": "auto"},
         ["the audio network begins with random weights (method.audio_weights)"]),
        ({"audio_weights": "untrained", "text_weights": "untrained"},
         ["the audio and the text network begin with random weights (method.audio_weights, method.text_weights)"]),
        ({"audio_weights": "untrained", "audio": "hf:own"}, []),
        ({}, []),
    ],
)  # fmt: skip
def test_networks_that_begin_untrained_are_noted(options, said):
    assert config_warnings._untrained_networks(SimpleNamespace(options=SimpleNamespace(**options))) == said


@pytest.mark.parametrize("proxy", ["anchor-aware", "class-mean"])
def test_a_proxy_that_training_does_not_use_is_noted(proxy):
    said = "proxy: proxy.aa_mix is 0, so training does not use the proxies"
    assert said in config_warnings.config_warnings(full("aadml", **{"proxy.name": proxy, "proxy.aa_mix": 0.0}))
    assert said not in config_warnings.config_warnings(full("aadml", **{"proxy.name": proxy}))


def test_an_option_that_cannot_act_beside_the_others_is_said_to_change_nothing():
    draw, heard = np.random.default_rng(0).normal, []
    clips = Clips.of(["a", "b", "c"] * 20, audio=draw(size=(60, 8)), visual=draw(size=(60, 9)))
    settings = {"network.hidden": [4], "training.epochs": 1, "training.momentum": 0.9}
    aadml.fit(clips, settings=settings, loss="triplet", on_note=heard.append)
    assert (
        "training.momentum=0.9 changes nothing: it has an effect only with optimizer sgd or rmsprop, not adam" in heard
    )
