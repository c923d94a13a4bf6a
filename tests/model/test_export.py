"""Exported files compute what the model computes, for any number of rows, and a failure leaves nothing behind."""

import json
import sys

import numpy as np
import pytest
import torch

import aadml
from aadml.feature_extraction.ground.errors import InputError, MissingExtraError

SMALL = {"network.hidden": [8], "training.epochs": 1, "training.batch": 20}


@pytest.fixture(scope="module")
def model(small_features):
    return aadml.fit(small_features, method="aadml", settings=SMALL | {"readout": "posterior"})


def rows_of(small_features, modality):
    return aadml.read(small_features).test[modality].numpy()


def close(found, wanted):
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-6 * max(1, np.abs(wanted).max()))


def test_a_program_computes_what_the_model_computes(model, small_features, tmp_path):
    for head in model.export(tmp_path / "head.pt2"):
        program = torch.export.load(head.path).module()
        for given in np.split(rows_of(small_features, head.modality), [1, 8]):
            close(program(torch.from_numpy(given)).numpy(), model.embed(**{head.modality: given}))
        assert head.difference <= 1e-6


def test_onnx_computes_what_the_model_computes_and_says_what_it_is(model, small_features, tmp_path):
    runtime = pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")
    heads = model.export(tmp_path / "head.onnx")
    assert [head.path.name for head in heads] == ["head-audio.onnx", "head-visual.onnx"]
    for head in heads:
        session = runtime.InferenceSession(head.path)
        for given in np.split(rows_of(small_features, head.modality), [1, 8]):
            (found,) = session.run(["embedding"], {head.modality: given})
            close(found, model.embed(**{head.modality: given}))
        metadata = session.get_modelmeta().custom_metadata_map
        assert json.loads(metadata["class_names"]) == [*model.class_names]
        assert (metadata["modality"], metadata["similarity"]) == (head.modality, "dot")
    saved = json.loads((model.save(tmp_path / "model") / "model.json").read_text())
    assert metadata["model_sha256"] == saved["weights"]["sha256"]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["kcca", "dcca"])
def test_the_methods_are_exported(method, small_features, tmp_path):
    settings = {"training.epochs": 1} if method == "dcca" else None
    fitted = aadml.fit(small_features, method=method, settings=settings)
    for head in fitted.export(tmp_path / "head.pt2"):
        given = rows_of(small_features, head.modality)[:7]
        found = torch.export.load(head.path).module()(torch.from_numpy(given)).numpy()
        close(found, fitted.embed(**{head.modality: given}))


def test_what_cannot_be_exported_ends_in_one_line_and_leaves_nothing(small_features, model, tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"^random: the audio part cannot be exported"):
        aadml.fit(small_features, method="random").export(tmp_path / "head.pt2")
    with pytest.raises(InputError, match=r"the ending is '\.h5'; choose \.onnx or \.pt2"):
        model.export(tmp_path / "head.h5")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingExtraError, match=r"export to ONNX needs onnxruntime.*aadml\[onnx\]"):
        model.export(tmp_path / "head.onnx")
    assert not list(tmp_path.iterdir())


def test_an_older_export_is_replaced_and_nothing_else(model, tmp_path):
    for _ in range(2):
        model.export(tmp_path / "head.pt2")
    model.save(tmp_path / "model")
    (tmp_path / "model" / "model.safetensors").rename(tmp_path / "head-visual.pt2")
    before = {path: path.read_bytes() for path in tmp_path.glob("*.pt2")}
    with pytest.raises(InputError, match=r"head-visual\.pt2 exists and is not an exported model, so the file"):
        model.export(tmp_path / "head.pt2")
    assert before == {path: path.read_bytes() for path in tmp_path.glob("*.pt2")}


def test_a_file_that_differs_from_the_model_is_not_kept(model, tmp_path, monkeypatch):
    monkeypatch.setattr("aadml.model.export._program", lambda *_: lambda rows: torch.zeros(len(rows), 3))
    with pytest.raises(InputError, match="the exported audio part differs from the model by "):
        model.export(tmp_path / "head.pt2")
    assert not list(tmp_path.iterdir())


def test_a_model_is_not_exported_through_a_link(model, tmp_path):
    (tmp_path / "head-visual.pt2").symlink_to(tmp_path / "mine")
    with pytest.raises(InputError, match=r"head-visual\.pt2 is a symbolic link"):
        model.export(tmp_path / "head.pt2")
    assert [path.name for path in tmp_path.iterdir()] == ["head-visual.pt2"]
