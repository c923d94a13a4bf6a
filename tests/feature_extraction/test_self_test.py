import json
from dataclasses import replace
from importlib.metadata import version
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from click.testing import CliRunner

from aadml.cli import cli
from aadml.feature_extraction import self_test
from aadml.feature_extraction.backbones.inception_v3 import InceptionV3
from aadml.feature_extraction.backbones.panns import PANNS_NETWORKS
from aadml.feature_extraction.backbones.vggish import VGGish, vggish
from aadml.feature_extraction.frontends.inference import seeded
from aadml.feature_extraction.self_test import examine
from aadml.feature_extraction.weights.table import WEIGHTS, weights_folder
from aadml.feature_extraction.weights.tensor_files import write_tensors


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("AADML_CACHE", str(tmp_path))
    weights_folder().mkdir()
    return weights_folder()


def unpublished(monkeypatch, name):
    """Take any content of the file of that name for the published one."""
    monkeypatch.setitem(WEIGHTS, name, replace(WEIGHTS[name], md5=None, sha256=None))
    return weights_folder() / WEIGHTS[name].file


def test_an_absent_file_says_where_it_is_to_be_had_and_put(cache):
    finding = examine("vggish")
    assert finding.passed is None
    assert finding.detail == "download the file from https://storage.googleapis.com/audioset/vggish_model.ckpt"


def test_another_file_of_the_same_name_does_not_pass(cache):
    (cache / "vggish_model.ckpt").write_bytes(b"something")
    finding = examine("vggish")
    assert finding.passed is False
    assert "md5" in finding.detail


@pytest.mark.parametrize(("scale", "passed"), [(1.0, True), (1.08, True), (1.12, False)])
def test_vggish_is_held_against_the_statistics_of_its_authors(monkeypatch, scale, passed):
    for name in ("vggish", "vggish-pca"):
        unpublished(monkeypatch, name).write_bytes(b"weights")
    asked = []

    def described(extractor, modality, options, clip):
        asked.append(options)
        assert (extractor, modality) == ("vggish", "audio")
        np.testing.assert_allclose(clip, np.sin(2 * np.pi * np.arange(48_000) / 16), atol=1e-4)
        mean, deviation = {"pre-activation": (0.000657, 0.343 * scale), "pca-8bit": (126.0, 89.3)}[options["variant"]]
        return np.tile([mean - deviation, mean + deviation], (3, 64))

    monkeypatch.setattr(self_test, "_described", described)
    finding = examine("vggish")
    assert finding.passed is passed
    assert f"self-test {'passed, ' if passed else 'failed ('}pre-activation: mean 0.000657" in finding.detail
    assert "(published 0.000657, 0.343)" in finding.detail
    assert [options["variant"] for options in asked] == ["pre-activation", "pca-8bit"][: 2 if passed else 1]
    assert all(options["weights"] == "vggish" for options in asked)


@pytest.mark.slow
def test_the_statistics_are_those_of_the_extractor(monkeypatch):
    path, pca = unpublished(monkeypatch, "vggish"), unpublished(monkeypatch, "vggish-pca")
    torch.save(seeded(VGGish).state_dict(), path)
    generator = np.random.default_rng(0)
    np.savez(pca, pca_eigen_vectors=generator.normal(size=(128, 128)), pca_means=generator.normal(size=(128, 1)))
    sine = np.sin(2 * np.pi * 1000 * np.arange(48_000) / 16_000).astype(np.float32)
    measured = {}
    for variant in self_test.VGGISH_STATISTICS:
        made = vggish(variant=variant, weights=str(path))
        rows = made.describe([made.prepare(sine)])[0]
        assert rows.shape == (3, 128)
        measured[variant] = (rows.mean(), rows.std())
    assert examine("vggish").passed is False
    monkeypatch.setattr(self_test, "VGGISH_STATISTICS", measured)
    assert examine("vggish").detail.startswith("checksum of first use; self-test passed, pre-activation")


@pytest.mark.slow
def test_the_other_files_are_loaded_whole(monkeypatch):
    write_tensors(unpublished(monkeypatch, "inception-v3-tf"), seeded(InceptionV3).state_dict())
    assert examine("inception-v3-tf").detail == (
        "checksum of first use; all tensors can be loaded (no reference statistics are published)"
    )
    torch.save({"model": PANNS_NETWORKS["cnn10"]().state_dict()}, unpublished(monkeypatch, "panns-cnn10"))
    assert examine("panns-cnn10").passed
    torch.save({"model": PANNS_NETWORKS["cnn10"]().state_dict()}, unpublished(monkeypatch, "panns-resnet38"))
    assert examine("panns-resnet38").passed is False
    unpublished(monkeypatch, "youtube-8m-pca").write_bytes(b"no archive")
    assert "cannot be read" in examine("youtube-8m-pca").detail


@pytest.mark.parametrize(
    ("rows", "passed"),
    [
        (np.array([[0.0, 0.5]]), True),
        (np.zeros((1, 2)), False),
        (np.array([[1.0, np.nan]]), False),
        (np.array([[np.inf, 1.0]]), False),
    ],
)
def test_an_inception_that_gives_nothing_or_no_number_does_not_pass(monkeypatch, rows, passed):
    unpublished(monkeypatch, "inception-v3-tf").write_bytes(b"weights")
    monkeypatch.setattr(self_test, "_described", lambda *given: rows)
    finding = examine("inception-v3-tf")
    assert finding.passed is passed
    assert ("features of a gray frame are all zero or not finite" in finding.detail) is not passed


def test_the_doctor_lists_packages_extras_and_weights(cache):
    result = CliRunner().invoke(cli, ["doctor"])
    assert result.exit_code == 0
    for words in ("python", "torch", "bfloat16 units", "tfhub", str(cache), "inception_v3_google-0cc3c7bd.pth"):
        assert words in result.stdout
    report = json.loads(CliRunner().invoke(cli, ["doctor", "--json"]).stdout)
    assert report["packages"]["torch"] == version("torch")
    assert report["extras"].keys() == {"tfhub", "hub", "lora", "onnx", "parquet", "plot", "ray", "serve", "datasets"}
    assert report["weights"].keys() == WEIGHTS.keys()
    assert report["weights"]["panns-cnn14"] == {
        "file": "Cnn14_mAP=0.431.pth",
        "present": False,
        "passed": None,
        "detail": "download the file from https://zenodo.org/records/3987831/files/Cnn14_mAP%3D0.431.pth?download=1",
        "purpose": "PANNs Cnn14, 32 kHz",
        "license": "CC-BY-4.0",
        "citation": "Kong et al., PANNs: Large-Scale Pretrained Audio Neural Networks, TASLP 2020",
    }


def test_the_doctor_fails_when_a_file_is_broken(cache):
    (cache / "vggish_model.ckpt").write_bytes(b"something")
    result = CliRunner().invoke(cli, ["doctor"])
    assert result.exit_code == 1
    assert "vggish                 BROKEN  vggish_model.ckpt: " in result.stdout


def test_matrices_are_described_by_their_dimensions_and_panns_by_its_tensors(cache, monkeypatch):
    loaded, name = [], "panns-cnn14"
    monkeypatch.setattr(
        self_test,
        "youtube8m_whitening",
        lambda path: loaded.append(path) or SimpleNamespace(components=np.zeros((5, 3))),
    )
    assert self_test._youtube8m("youtube-8m-pca") == "contains matrices that map 5 to 3 dimensions"
    monkeypatch.setattr(self_test, "read_tensors", lambda path: loaded.append(path) or {"a": 1})
    monkeypatch.setattr(self_test, "load_published", lambda network, tensors: loaded.append((network, tensors)))
    monkeypatch.setitem(self_test.PANNS_NETWORKS, "cnn14", lambda: "network")
    assert self_test._panns(name) == self_test._LOADED
    assert loaded == [cache / WEIGHTS["youtube-8m-pca"].file, cache / WEIGHTS[name].file, ("network", {"a": 1})]
