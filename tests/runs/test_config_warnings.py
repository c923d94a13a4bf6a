"""Warnings before a training name what has no effect."""

import numpy as np
import pytest
import torch

import aadml
from aadml.comparison.clips import Clips


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
def test_keys_of_the_loop_are_said_to_change_nothing_where_there_is_none(options, said):
    draw, heard = np.random.default_rng(0).normal, []
    clips = Clips.of(["a", "b", "c"] * 20, audio=draw(size=(60, 8)), visual=draw(size=(60, 9)))
    aadml.fit(clips, method="cca", settings={"method.dimension": 2} | options, on_note=heard.append)
    assert [line for line in heard if "training." in line] == said


def test_what_looks_at_validation_clips_is_said_to_change_nothing_where_there_are_none():
    draw = np.random.default_rng(0).normal
    clips = Clips.of(["a", "b", "c"] * 20, audio=draw(size=(60, 8)), visual=draw(size=(60, 9)))
    looking = {"training.patience": 2, "training.schedule": "plateau", "training.criterion": "recall@2"}
    settings = {"network.hidden": [4], "training.epochs": 1, "training.select": "last"} | looking
    for valid, idle in ((clips.select(torch.arange(0)), True), (clips, False)):
        heard = []
        aadml.fit(aadml.Splits(clips, valid, clips), settings=settings, loss="triplet", on_note=heard.append)
        for key, value in looking.items():
            assert (f"{key}={value} changes nothing: there are no validation clips" in heard) == idle


def test_an_option_that_cannot_act_beside_the_others_is_said_to_change_nothing():
    draw, heard = np.random.default_rng(0).normal, []
    clips = Clips.of(["a", "b", "c"] * 20, audio=draw(size=(60, 8)), visual=draw(size=(60, 9)))
    settings = {"network.hidden": [4], "training.epochs": 1, "training.momentum": 0.9}
    aadml.fit(clips, settings=settings, loss="triplet", on_note=heard.append)
    assert (
        "training.momentum=0.9 changes nothing: it has an effect only with optimizer sgd or rmsprop, not adam" in heard
    )
