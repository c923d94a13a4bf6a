"""Model folders are checked as they are read, and a folder that is not a model is named for what it is."""

import pytest
import torch

import aadml
from aadml.feature_extraction.ground.errors import InputError
from aadml.model.files import is_model, load_model, verify_model


@pytest.fixture
def folder(tmp_path):
    return aadml.fit("synthetic:ave", method="random").save(tmp_path / "model")


def load(folder):
    return load_model(folder, torch.device("cpu"))


def test_a_saved_model_is_loaded_and_verified(folder):
    assert is_model(folder)
    assert verify_model(folder) == []
    assert load(folder).facts.label == "random"


@pytest.mark.parametrize("name", ["model.safetensors", "model.json"])
def test_a_changed_file_is_named(folder, name):
    data = bytearray((folder / name).read_bytes())
    data[len(data) // 2] ^= 1
    (folder / name).write_bytes(data)
    (damage,) = verify_model(folder)
    assert name in damage
    with pytest.raises(InputError, match=name):
        load(folder)


def test_missing_weights_are_named(folder):
    (folder / "model.safetensors").unlink()
    (damage,) = verify_model(folder)
    assert damage.endswith(
        "cannot be read (No such file or directory), so the model is incomplete; restore the file from a copy"
    )


def test_other_folders_are_named_for_what_they_are(folder, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "manifest.json").write_text("{}")
    for place, message in {
        tmp_path / "nowhere": "does not exist; pass a run",
        folder / "model.json": "is a file, not a folder",
        tmp_path / "run": "is a run whose training was not finished; continue the training with",
        tmp_path: "is neither a run nor a model .the folder has no model.json.",
    }.items():
        with pytest.raises(InputError, match=message):
            load(place)
