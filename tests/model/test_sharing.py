"""Models on the Hugging Face Hub, with a server of this machine in its place."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

import aadml
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.feature_extraction.ground.errors import DamagedFileError, InputError
from tests.cli.conftest import run
from tests.hub_server import running_hub

hub = pytest.importorskip("huggingface_hub", reason="the extra hub is not installed")
constants = pytest.importorskip("huggingface_hub.constants")


@pytest.fixture
def place(tmp_path, monkeypatch):
    """The hub, whose address the library has read from HF_ENDPOINT."""
    with running_hub() as server:
        template = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace(constants.ENDPOINT, server.address)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "ENDPOINT", server.address)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
            monkeypatch.setattr(constants, name, str(tmp_path / "cache"))
        yield server


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "clips.h5"
    write_features(path, synthetic(classes=3, train=60, valid=15, test=30, dimensions=(12, 14), difficulty=0.2))
    return aadml.fit(path, method="cca")


def test_a_pushed_model_loads_and_embeds_alike(model, place):
    address = model.push_to_hub("org/name", license_id="apache-2.0")
    sha, files = place.files("org/name")
    assert address == f"{place.address}/org/name/commit/{sha}"
    rows = np.eye(12, dtype=np.float32)
    for again in (aadml.load("hf:org/name"), aadml.load("org/name", revision="main")):
        np.testing.assert_array_equal(again.embed(audio=rows), model.embed(audio=rows))
    assert sorted(files) == ["README.md", "model.json", "model.safetensors"]


def test_each_commit_is_a_revision(model, place, tmp_path):
    first = model.push_to_hub("org/name", private=True).rpartition("/")[2]
    assert place.private == {"org/name": True}
    other = aadml.fit(tmp_path / "clips.h5", method="cca", settings={"method.dimension": 2})
    other.push_to_hub("org/name")
    rows = np.eye(12, dtype=np.float32)
    for loaded, pushed in ((aadml.load("hf:org/name", revision=first), model), (aadml.load("hf:org/name"), other)):
        np.testing.assert_array_equal(loaded.embed(audio=rows), pushed.embed(audio=rows))
    assert model.embed(audio=rows).shape != other.embed(audio=rows).shape
    with pytest.raises(InputError, match=r"^hf:org/name cannot be read .*check connection, name and revision"):
        aadml.load("hf:org/name", revision="v9")


def test_only_the_files_of_the_model_are_downloaded(model, place):
    model.push_to_hub("org/name")
    place.commit("org/name", {"code.py": b"raise SystemExit", "pytorch_model.bin": b"pickle"})
    aadml.load("hf:org/name")
    loaded = {request.rpartition("/")[2] for request in place.requests if "/resolve/" in request}
    assert loaded == {"README.md", "model.json", "model.safetensors"}


@pytest.mark.parametrize("files", [{}, {".gitattributes": b"*.bin filter=lfs"}, {"config.json": b"{}"}])
def test_a_repository_without_a_model_is_named(files, place):
    place.repositories["org/other"] = []
    place.commit("org/other", files)
    with pytest.raises(
        InputError,
        match=r"^hf:org/other has no model of aadml, because the file model.json is missing; pass the name of",
    ):
        aadml.load("hf:org/other")


@pytest.mark.slow
def test_the_commands_use_the_hub_of_the_environment(model, tmp_path):
    with running_hub() as server:
        environment = os.environ | {
            "HF_ENDPOINT": server.address, "HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "0",
        }  # fmt: skip
        folder, rows = str(model.save(tmp_path / "saved")), str(tmp_path / "rows.h5")
        for arguments in (["export", folder, "-o", "hf:org/name"], ["embed", "hf:org/name", "clips.h5", "-o", rows]):
            command = [sys.executable, "-m", "aadml", *arguments]
            done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
            assert done.returncode == 0, done.stderr
    assert Path(rows).is_file()


def test_the_command_line_uploads_and_reads_a_model(model, place, tmp_path):
    folder = str(model.save(tmp_path / "saved"))
    data, rows = tmp_path / "clips.h5", tmp_path / "rows.h5"
    code, address, _ = run("export", folder, "-o", "hf:org/name")
    assert (code, address) == (0, f"{place.address}/org/name/commit/{place.files('org/name')[0]}\n")
    assert run("embed", "hf:org/name@main", data, "-o", rows)[0] == 0
    assert rows.is_file()
    assert run("evaluate", "hf:org/name", "--data", data)[0] == 0


def test_the_card_has_metadata_with_protocol_chance_and_interval(model, place):
    model.push_to_hub("org/name", license_id="apache-2.0")
    card = place.files("org/name")[1]["README.md"].decode()
    data = yaml.safe_load(card.split("---\n")[1])
    assert (data["library_name"], data["license"]) == ("aadml", "apache-2.0")
    assert {"cca", "audio", "visual"} <= set(data["tags"])
    (result,) = data["model-index"][0]["results"]
    side = model.evaluation["directions"]["audio-visual"]
    metric = result["metrics"][0]
    assert metric["value"] == pytest.approx(side["map"], abs=1e-4)
    assert metric["args"]["protocol"] == "inductive"
    assert metric["args"]["chance"] == pytest.approx(side["chance"], abs=1e-4)
    assert metric["args"]["interval_95"] == pytest.approx(side["map_interval"], abs=1e-4)
    assert 'aadml.load("hf:org/name")' in card


def test_the_card_names_the_protocol_of_a_score_that_is_not_inductive(model, place):
    metrics = {}
    for protocol in ("inductive", "legacy:running-map"):
        replace(model, record=replace(model.record, protocol=protocol)).push_to_hub("org/name")
        card = place.files("org/name")[1]["README.md"].decode()
        metrics[protocol] = yaml.safe_load(card.split("---\n")[1])["model-index"][0]["results"][0]["metrics"][0]
    assert metrics["inductive"]["name"] == "MAP audio-visual"
    assert metrics["legacy:running-map"]["name"] == "MAP (legacy:running-map) audio-visual"
    assert metrics["legacy:running-map"]["type"] == "map-legacy-running-map"


def test_a_damaged_download_is_refused(model, place):
    model.push_to_hub("org/name")
    weights = place.files("org/name")[1]["model.safetensors"]
    place.commit("org/name", {"model.safetensors": weights + b"x"})
    with pytest.raises(DamagedFileError):
        aadml.load("hf:org/name")


def test_what_the_hub_refuses_ends_in_one_line(model, place, monkeypatch):
    with pytest.raises(
        InputError, match=r"^hf:org/no cannot be read .*\(404 Client Error.*\); check connection, name and revision"
    ):
        aadml.load("hf:org/no")
    with pytest.raises(InputError, match="'a/b/c' is not the name of a model on the Hugging Face Hub"):
        model.push_to_hub("a/b/c")
    with pytest.raises(InputError, match=r"^org/name does not exist"):
        aadml.load("org/name")  # a folder; the hub is not asked

    def refuse(*_, **__):
        raise OSError("401 Client Error")

    monkeypatch.setattr(hub.HfApi, "create_repo", refuse)
    with pytest.raises(InputError, match=r"^org/name cannot be written .*\(401 Client Error\).*hf auth login"):
        model.push_to_hub("org/name")
    assert not Path("org").exists()
