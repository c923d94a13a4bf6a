"""What `aadml doctor` finds: packages, extras, weights; an absent one is None and nothing is fetched."""

import json
import platform
import re
import tomllib
from pathlib import Path

import pytest
import torch

import aadml
from aadml.feature_extraction.self_test import WeightCheck
from aadml.feature_extraction.weights.table import WEIGHTS
from aadml.runs import doctor as doctors
from aadml.runs import environment
from aadml.runs.environment import git_commit, installed_version


@pytest.fixture
def found(monkeypatch, tmp_path):
    monkeypatch.setenv("AADML_CACHE", str(tmp_path))
    return doctors.doctor()


def test_every_weight_file_is_told_of_and_absent_ones_have_neither_passed_nor_failed(found):
    assert found["weights"].keys() == WEIGHTS.keys()
    for name, one in found["weights"].items():
        assert (one["present"], one["passed"]) == (False, None)
        assert one["file"] == WEIGHTS[name].file
        assert (one["purpose"], one["license"], one["citation"]) == (
            WEIGHTS[name].purpose, WEIGHTS[name].license, WEIGHTS[name].citation
        )  # fmt: skip
    assert json.loads(json.dumps(found)) == found


def test_what_an_examination_says_is_passed_on(monkeypatch):
    monkeypatch.setattr(doctors, "examine", lambda name: WeightCheck(False, "broken"))
    for one in doctors.doctor()["weights"].values():
        assert (one["present"], one["passed"], one["detail"]) == (True, False, "broken")


def test_packages_that_are_there_have_their_versions(found, monkeypatch):
    assert found["packages"]["torch"] == installed_version("torch")
    assert None not in found["packages"].values()
    assert found["extras"]["parquet"].keys() == {"pyarrow"}
    monkeypatch.setattr(doctors, "installed_version", lambda name: None)
    bare = doctors.doctor()
    assert bare["packages"] == {}
    assert bare["extras"]["hub"] == {"transformers": None, "tokenizers": None, "pillow": None}
    assert bare["system"]["aadml"] == "not installed"


def test_every_package_of_pyproject_is_reported(found):
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {
        extra: {re.split("[<>=]", line)[0] for line in lines}
        for extra, lines in project["optional-dependencies"].items()
    }
    assert {extra: {*packages} for extra, packages in found["extras"].items()} == extras
    core = {re.split("[<>=]", line)[0] for line in project["dependencies"]}
    assert {*found["packages"]} >= core - {"opencv-python"}  # a machine may have the headless package instead


def test_headless_opencv_is_recorded_where_it_is_installed(monkeypatch):
    headless = environment.HEADLESS
    versions = {headless: "5.0"}
    monkeypatch.setattr(environment, "installed_version", versions.get)
    assert environment._versions()[headless] == "5.0"
    versions.clear()
    assert headless not in environment._versions()
    assert environment._versions().keys() == {*environment.PACKAGES}


@pytest.mark.parametrize(("units", "said"), [(True, "with bfloat16 units"), (False, "without bfloat16 units")])
def test_the_machine_is_described(monkeypatch, units, said):
    monkeypatch.setattr(doctors, "chosen_device", lambda *_: torch.device("cpu"))
    monkeypatch.setattr(doctors, "bfloat16_units", lambda device: units)
    system = doctors._system()
    assert system["device"] == f"cpu, {torch.get_num_threads()} threads, {said}"
    assert system["python"] == platform.python_version()
    assert system["aadml"] == aadml.__version__


def test_a_commit_is_told_where_there_is_a_checkout_and_git(monkeypatch, tmp_path):
    assert installed_version("no-such-package") is None
    (tmp_path / "aadml").mkdir()
    monkeypatch.setattr(environment, "__file__", str(tmp_path / "aadml" / "runs" / "environment.py"))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert git_commit() is None
    monkeypatch.setenv("PATH", str(tmp_path))
    assert git_commit() is None
