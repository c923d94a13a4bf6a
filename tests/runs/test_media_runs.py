"""Runs of networks on videos: they go on where they were killed, and load where the files of their networks are not."""

import json
import os
import shutil

import h5py
import numpy as np
import pytest
from click.testing import CliRunner
from faults import KILLED, in_child
from trainings import contents, differences

import aadml
from aadml.cli import cli
from aadml.configuration.from_arguments import assemble
from aadml.methods.training.session import Callbacks
from aadml.runs.embed import embed_file
from aadml.runs.fit import resume_run
from aadml.runs.train import train_into
from tests.feature_extraction.hub import tiny
from tests.methods.towers.conftest import cache, videos  # noqa: F401

pytest.importorskip("transformers")


@pytest.fixture
def networks(tmp_path):
    """Folders of tiny networks that a test may remove."""
    return {name: shutil.copytree(tiny.written(name, tmp_path / "written"), tmp_path / name)
            for name in ("wav2vec2", "clip")}  # fmt: skip


@pytest.fixture
def settings(networks):
    return {
        "towers.audio": f"hf:{networks['wav2vec2']}", "towers.visual": f"hf:{networks['clip']}", "towers.blocks": 1,
        "network.hidden": [8], "training.batch": 6, "training.learning_rate": 1e-3, "training.criterion": "auto",
    }  # fmt: skip


def kill(record):
    if record["epoch"] == 2:
        os._exit(KILLED)


@pytest.mark.slow
def test_a_killed_training_on_videos_ends_in_the_same_bytes(videos, settings, tmp_path):  # noqa: F811
    config = assemble(data=str(videos), loss="aa-triplet", settings=settings, **{"training.epochs": 3})
    whole, folder = tmp_path / "whole", tmp_path / "killed"
    assert in_child(lambda: train_into(config, folder, callbacks=Callbacks(on_epoch=kill))).code == KILLED
    train_into(config, whole)
    resume_run(folder)
    assert differences(contents(whole), contents(folder)) == []


@pytest.mark.slow
def test_a_model_embeds_videos_offline_without_the_files_of_its_networks(videos, settings, networks, tmp_path):  # noqa: F811
    config = assemble(data=str(videos), method="pairs", settings=settings, **{"training.epochs": 1})
    train_into(config, tmp_path / "run")
    clip = str(videos.parent / "25.mp4")
    before = aadml.load(tmp_path / "run").embed(audio=clip, visual=clip)
    aadml.load(tmp_path / "run").save(tmp_path / "model")
    assert str(tmp_path) not in (tmp_path / "model" / "model.json").read_text()
    for folder in (*networks.values(), tmp_path / "run"):
        shutil.rmtree(folder)
    model = aadml.load(tmp_path / "model")
    after = model.embed(audio=clip, visual=clip)
    assert all(np.array_equal(after[m], before[m]) for m in ("audio", "visual"))
    embed_file(model, videos, tmp_path / "e.h5")
    with h5py.File(tmp_path / "e.h5") as file:
        row = [name.decode() for name in file["id"][()]].index("v25")
        for modality in ("audio", "visual"):
            np.testing.assert_allclose(file[modality][row], after[modality], rtol=0, atol=1e-5)


@pytest.mark.slow
def test_a_session_of_the_command_line_trains_audits_and_evaluates(videos, settings, tmp_path):  # noqa: F811
    chosen = [part for key, value in settings.items() for part in ("--set", f"{key}={json.dumps(value)}")]
    runs = ("--runs", str(tmp_path / "runs"))

    def call(*arguments):
        found = CliRunner().invoke(cli, [*arguments])
        assert found.exit_code == 0, found.output
        return found.stdout

    run = call("train", "--data", str(videos), "--epochs", "1", *runs, *chosen).strip().splitlines()[-1]
    own = json.loads(call("evaluate", run, "--json"))["map_mean"]
    again = json.loads(call("evaluate", run, "--data", str(videos), "--json"))["map_mean"]
    assert again == pytest.approx(own, abs=1e-9)
    assert "fail" not in call("audit", run).lower()


@pytest.mark.slow
def test_an_audit_passes_for_scored_clips_without_sound(videos, settings, tmp_path):  # noqa: F811
    lines = ["id,audio,visual,label,split"]
    for name, media, label, split, _ in (line.split(",") for line in videos.read_text().splitlines()[1:]):
        path = videos.parent / media
        lines.append(f"{name},{'' if name in ('v24', 'v26') else path},{path},{label},{split}")
    (tmp_path / "m.csv").write_text("\n".join(lines))
    config = assemble(data=str(tmp_path / "m.csv"), method="pairs", settings=settings, **{"training.epochs": 1})
    train_into(config, tmp_path / "run")
    report = aadml.audit(tmp_path / "run")
    assert [finding for finding in report if finding.failed] == []
