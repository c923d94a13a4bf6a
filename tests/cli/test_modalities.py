"""Any number of modalities, of any name, through every command: one file, all directions."""

import json
import re
from itertools import permutations
from pathlib import Path

import h5py
import numpy as np
import pytest

import aadml as face
from aadml.feature_extraction.feature_file.reading import read_features

NAMES = ("audio", "text", "flow")
ALL = ["-".join(two) for two in permutations(NAMES, 2)]
QUICK = ("--set", "network.hidden=[16]", "--set", "training.batch=20", "--set", "training.learning_rate=0.01")
COUNTS = {"train": 60, "valid": 15, "test": 30}


@pytest.fixture
def views(tmp_path):
    """Three views of clips: each a turned and noisy copy of what the clip shows; and a fourth that nobody asks for."""
    generator = np.random.default_rng(0)
    widths = {"sound": 6, "words": 5, "motion": 7, "rest": 4}
    turns = {name: generator.standard_normal((4, width)) for name, width in widths.items()}
    arrays = {}
    for part, count in COUNTS.items():
        labels = np.arange(count) % 3
        shown = 3 * np.eye(4)[labels] + generator.standard_normal((count, 4))
        for name, turn in turns.items():
            arrays[f"{name}_{part}"] = (shown @ turn + 0.1 * generator.standard_normal((count, widths[name]))).astype(
                "f4"
            )
        arrays[f"label_{part}"] = labels
    np.savez(tmp_path / "views.npz", **arrays)
    return tmp_path / "views.npz"


@pytest.fixture
def features(aadml, views, tmp_path):
    """The three views in one feature file, one of them under a name of its own."""
    path = tmp_path / "three.h5"
    code, _, err = aadml("convert", views, path, "--audio", "sound", "--text", "words", "--view", "flow=motion")
    assert code == 0, err
    assert "arrays were left out: rest_test, rest_train" in err
    return path


@pytest.fixture
def run(aadml, features, tmp_path):
    code, out, err = aadml("train", "--data", features, "--epochs", 3, "--runs", tmp_path / "runs", *QUICK)
    assert code == 0, err
    return out.strip().splitlines()[-1]


def test_a_file_holds_modalities_of_any_name_in_one_order(features, views, aadml):
    content = read_features(features)
    assert tuple(content.features) == NAMES
    assert np.array_equal(content.features["flow"][:60], np.load(views)["motion_train"])
    found = json.loads(aadml("inspect", features, "--json")[1])
    assert {name: figures["dimensions"] for name, figures in found["modalities"].items()} == {
        "audio": 6, "text": 5, "flow": 7,
    }  # fmt: skip
    with h5py.File(features) as file:
        assert file.attrs["version"] == 2


@pytest.mark.slow
def test_all_directions_are_trained_scored_embedded_and_reported(aadml, run, features, tmp_path):
    scored = json.loads(aadml("evaluate", run, "--json")[1])
    assert list(scored["directions"]) == ALL
    assert all(one["map"] > one["chance"] + 0.2 for one in scored["directions"].values())
    assert aadml("embed", run, features, "-o", tmp_path / "e.h5")[0] == 0
    again = json.loads(aadml("evaluate", "--embeddings", tmp_path / "e.h5", "--json")[1])
    assert {name: one["map"] for name, one in again["directions"].items()} == {
        name: one["map"] for name, one in scored["directions"].items()
    }
    assert aadml("convert", tmp_path / "e.h5", tmp_path / "again.h5")[0] == 0
    assert tuple(read_features(tmp_path / "again.h5").features) == NAMES
    code, out, err = aadml("report", run)
    assert code == 0, err
    text = Path(out.strip().splitlines()[-1]).read_text(encoding="utf-8")
    assert all(name in text for name in ALL)


def test_a_model_embeds_a_modality_of_any_name_by_its_keyword(run, features):
    model, values = face.load(run), read_features(features).features["flow"]
    found = model.embed(flow=values)
    assert found.shape == (105, 3)
    both = model.embed(flow=values[:2], text=read_features(features).features["text"][:2])
    assert np.allclose(both["flow"], found[:2], atol=1e-6)


def test_two_of_three_are_chosen_for_a_method_of_two_views(aadml, features, tmp_path):
    code, _, err = aadml("train", "--data", features, "--method", "cca", "--runs", tmp_path / "runs")
    assert code == 2
    assert "cca learns from two modalities, but the clips have audio, text, flow; choose two (--set modalities=" in err
    assert "\n" not in err.strip().splitlines()[-1]
    arguments = ("--method", "cca", "--set", "method.dimension=3", "--runs", tmp_path / "runs")
    code, out, err = aadml("train", "--data", features, "--modalities", "flow,audio", *arguments)
    assert code == 0, err
    assert "the key modalities leaves out these modalities of the data: text" in err
    folder = out.strip().splitlines()[-1]
    assert list(json.loads(aadml("evaluate", folder, "--json")[1])["directions"]) == ["audio-flow", "flow-audio"]
    code, _, err = aadml("train", "--data", features, "--modalities", "audio,pose", *arguments)
    assert code == 2
    assert "has no pose; choose from audio, text, flow" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--view", "flow"), "pass NAME=VIEW"),
        (("--view", "Flow=motion"), "'Flow' cannot be the name of a modality"),
        (("--view", "label=motion"), "'label' cannot be the name of a modality"),
        (("--view", "flow_times=motion"), "'flow_times' cannot be the name of a modality"),
        (("--view", "audio=motion"), "audio has two views"),
        (("--view", "flow=nothing"), "has no view 'nothing'"),
    ],
)
def test_a_wrong_view_is_refused_in_one_line(aadml, views, tmp_path, arguments, message):
    code, _, err = aadml("convert", views, tmp_path / "o.h5", "--audio", "sound", *arguments)
    assert code == 2
    assert message in err
    assert not (tmp_path / "o.h5").exists()


def test_directions_may_name_what_the_data_have_and_nothing_else(aadml, features, tmp_path):
    arguments = ("--data", features, "--epochs", 1, "--runs", tmp_path / "runs", *QUICK)
    assert aadml("train", *arguments, "--set", "directions=[flow-text]")[0] == 0
    code, _, err = aadml("train", *arguments, "--set", "directions=[flow-pose]")
    assert code == 2
    assert "directions: there are no pose features; choose from audio, text, flow, both" in err
    code, _, err = aadml("train", *arguments, "--set", "directions=[flow]")
    assert code == 2
    assert "'flow' does not have the form ANCHORS-CANDIDATES" in err


def test_a_name_that_torch_has_taken_is_refused_where_clips_are_made():
    with pytest.raises(face.InputError, match="'train' is reserved by torch"):
        face.Clips.of([0, 1], audio=[[1], [2]], train=[[1], [2]])


@pytest.mark.slow
def test_tables_and_the_audit_take_all_directions(aadml, features, run, tmp_path):
    code, out, err = aadml("audit", run)
    assert code == 0, err
    assert "audio 0, text 0, flow 0" in out
    common = ("--data", features, "--seeds", 1, "--workers", 0)
    code, out, err = aadml("ablate", *common, "--over", "proxy.k=1,2", "-o", tmp_path / "a", "--max-epochs", 1, *QUICK)
    assert code == 0, err
    assert all(name in out for name in ALL)
    code, out, err = aadml("compare", *common, "--methods", "clip,pairs,cca", "--max-epochs", 1, "-o", tmp_path / "c")
    assert code == 1, err
    assert all(name in out for name in ALL)
    (hint,) = set(re.findall(r"choose two \((--set [^)]*)\)", err))
    two = (*hint.split(), "--set", "method.dimension=3", "-o", tmp_path / "d")
    code, _, err = aadml("compare", *common, "--methods", "cca", "--max-epochs", 1, *two)
    assert code == 0, err


@pytest.mark.slow
def test_a_modality_that_some_clips_lack_is_masked_and_counted_through_every_command(aadml, views, tmp_path):
    arrays, generator = dict(np.load(views)), np.random.default_rng(1)
    for part, count in COUNTS.items():
        arrays[f"motion_present_{part}"] = there = generator.random(count) >= 0.3
        arrays[f"motion_{part}"][~there] = np.nan  # whatever stands there
    np.savez(tmp_path / "holes.npz", **arrays)
    here = {part: int(arrays[f"motion_present_{part}"].sum()) for part in COUNTS}
    path = tmp_path / "holes.h5"
    code, _, err = aadml("convert", tmp_path / "holes.npz", path, "--audio", "sound", "--view", "flow=motion")
    assert code == 0, err
    assert f"{105 - sum(here.values())} of 105 clips have no flow; these clips are masked, not left out" in err
    found = json.loads(aadml("inspect", path, "--json")[1])
    assert found["present"] == {"flow": here}
    assert found["clips"] == 105
    assert f"flow is present in {here['train']} of 60 train" in aadml("inspect", path)[1]
    code, out, err = aadml("train", "--data", path, "--config", "pairs", "--epochs", 2, "--runs", tmp_path, *QUICK)
    assert code == 0, err
    folder = out.strip().splitlines()[-1]
    scored = json.loads(aadml("evaluate", folder, "--json")[1])["directions"]
    assert (scored["audio-flow"]["queries"], scored["audio-flow"]["gallery"]) == (30, here["test"])
    assert (scored["flow-audio"]["queries"], scored["flow-audio"]["gallery"]) == (here["test"], 30)
    assert aadml("embed", folder, path, "-o", tmp_path / "e.h5")[0] == 0
    again = json.loads(aadml("evaluate", "--embeddings", tmp_path / "e.h5", "--json")[1])["directions"]
    assert {name: one["map"] for name, one in again.items()} == {name: one["map"] for name, one in scored.items()}
    code, out, err = aadml("report", folder)
    assert code == 0, err
