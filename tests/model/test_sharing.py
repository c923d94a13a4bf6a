"""Models on the Hugging Face Hub, with a folder of this machine in its place."""

import inspect
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import yaml

import aadml
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file import write_features
from aadml.feature_extraction.ground.errors import DamagedFileError, InputError
from tests.cli.conftest import run

hub = pytest.importorskip("huggingface_hub", reason="the extra hub is not installed")


def checked(original, replacement):
    """The replacement, with arguments that the original accepts by name."""

    def call(*values, **options):
        inspect.signature(original).bind(*values, **options)
        return replacement(*values, **options)

    return call


@pytest.fixture
def place(tmp_path, monkeypatch):
    """The hub: a folder per name and revision."""
    root = tmp_path / "hub"

    def upload(self, *, repo_id, folder_path, commit_message):
        shutil.copytree(folder_path, root / repo_id / "main", dirs_exist_ok=True)
        return SimpleNamespace(commit_url=f"https://huggingface.co/{repo_id}/commit/1")

    def download(name, *, revision, allow_patterns):
        folder = root / name / (revision or "main")
        if not folder.is_dir():
            raise OSError("404 Client Error\nmore")
        assert set(allow_patterns) == {"model.json", "model.safetensors", "README.md"}
        return str(folder)

    def create(self, name, *, private, exist_ok):
        (root / name).mkdir(parents=True, exist_ok=exist_ok)

    for owner, name, replacement in (
        (hub.HfApi, "create_repo", create),
        (hub.HfApi, "upload_folder", upload),
        (hub, "snapshot_download", download),
    ):
        monkeypatch.setattr(owner, name, checked(getattr(owner, name), replacement))
    return root


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "clips.h5"
    write_features(path, synthetic(classes=3, train=60, valid=15, test=30, dimensions=(12, 14), difficulty=0.2))
    return aadml.fit(path, method="cca")


def test_a_pushed_model_loads_and_embeds_alike(model, place):
    address = model.push_to_hub("org/name", license_id="apache-2.0")
    assert address == "https://huggingface.co/org/name/commit/1"
    rows = np.eye(12, dtype=np.float32)
    for again in (aadml.load("hf:org/name"), aadml.load("org/name", revision="main")):
        np.testing.assert_array_equal(again.embed(audio=rows), model.embed(audio=rows))
    assert sorted(path.name for path in (place / "org/name/main").iterdir()) == [
        "README.md", "model.json", "model.safetensors",
    ]  # fmt: skip


def test_the_command_line_uploads_and_reads_a_model(model, place, tmp_path):
    folder = str(model.save(tmp_path / "saved"))
    data, rows = tmp_path / "clips.h5", tmp_path / "rows.h5"
    assert run("export", folder, "-o", "hf:org/name")[:2] == (0, "https://huggingface.co/org/name/commit/1\n")
    assert run("embed", "hf:org/name@main", data, "-o", rows)[0] == 0
    assert rows.is_file()
    assert run("evaluate", "hf:org/name", "--data", data)[0] == 0


def test_the_card_has_metadata_with_protocol_chance_and_interval(model, place):
    model.push_to_hub("org/name", license_id="apache-2.0")
    card = (place / "org/name/main/README.md").read_text()
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


def test_a_damaged_download_is_refused(model, place):
    model.push_to_hub("org/name")
    with (place / "org/name/main/model.safetensors").open("ab") as file:
        file.write(b"x")
    with pytest.raises(DamagedFileError):
        aadml.load("hf:org/name")


def test_what_the_hub_refuses_ends_in_one_line(model, place, monkeypatch):
    with pytest.raises(InputError, match=r"^hf:org/no: cannot be read .*\(404 Client Error\); check name and revision"):
        aadml.load("hf:org/no")
    with pytest.raises(InputError, match="'a/b/c' is not the name of a model on the Hugging Face Hub"):
        model.push_to_hub("a/b/c")
    with pytest.raises(InputError, match=r"^org/name: does not exist"):
        aadml.load("org/name")  # a folder; the hub is not asked

    def refuse(*_, **__):
        raise OSError("401 Client Error")

    monkeypatch.setattr(hub.HfApi, "create_repo", refuse)
    with pytest.raises(InputError, match=r"^org/name: cannot be written .*\(401 Client Error\).*hf auth login"):
        model.push_to_hub("org/name")
    assert not Path("org").exists()
