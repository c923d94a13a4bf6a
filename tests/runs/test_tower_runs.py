"""Runs of pretrained towers: they go on where they were killed, and load where the files of their model are not."""

import os
import shutil

import h5py
import numpy as np
import pytest
from faults import KILLED, in_child
from trainings import contents, differences

import aadml
from aadml.configuration.from_arguments import assemble
from aadml.methods.training.session import Callbacks
from aadml.runs.embed import embed_file
from aadml.runs.fit import resume_run
from aadml.runs.train import train_into
from tests.feature_extraction.hub import tiny

pytest.importorskip("transformers")


@pytest.fixture(autouse=True, scope="module")
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AADML_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def config(manifest, tmp_path):
    clap = shutil.copytree(tiny.written("clap", tmp_path / "written"), tmp_path / "clap")
    settings = {"method.audio": f"hf:{clap}", "method.text": f"hf:{clap}", "method.blocks": 1, "method.heads": "none",
                "method.dimension": 12, "training.batch": 12}  # fmt: skip
    return assemble(data=str(manifest), config="audio_text", settings=settings, **{"training.epochs": 3})


def kill(record):
    if record["epoch"] == 2:
        os._exit(KILLED)


@pytest.mark.slow
def test_a_killed_training_of_towers_ends_in_the_same_bytes(config, tmp_path):
    whole, folder = tmp_path / "whole", tmp_path / "killed"
    assert in_child(lambda: train_into(config, folder, callbacks=Callbacks(on_epoch=kill))).code == KILLED
    train_into(config, whole)
    resume_run(folder)
    assert differences(contents(whole), contents(folder)) == []


@pytest.mark.slow
def test_a_model_of_towers_embeds_offline_without_the_files_of_its_networks(config, manifest, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    folder = tmp_path / "run"
    train_into(config, folder)
    before = aadml.load(folder).embed(text="A tone, 3 of thirty")
    aadml.load(folder).save(tmp_path / "model")
    assert str(tmp_path) not in (tmp_path / "model" / "model.json").read_text()
    shutil.rmtree(tmp_path / "clap")
    shutil.rmtree(folder)
    model = aadml.load(tmp_path / "model")
    assert np.array_equal(model.embed(text="A tone, 3 of thirty"), before)
    embed_file(model, manifest, tmp_path / "e.h5")
    with h5py.File(tmp_path / "e.h5") as file:
        names = [name.decode() for name in file["id"][()]]
        row = file["audio"][names.index("t25#1")]
    np.testing.assert_allclose(model.embed(audio=str(manifest.parent / "25.wav")), row, rtol=0, atol=1e-6)
