"""The same content is read the same way, whatever it is called: every entry of the table, with random weights."""

import hashlib
import zipfile
from dataclasses import replace
from functools import partial

import h5py
import numpy as np
import pytest
import torch

from aadml.feature_extraction.backbones.inception_v3 import inception_v3
from aadml.feature_extraction.backbones.vggish import VGGish, vggish
from aadml.feature_extraction.frontends.inference import seeded
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.layers.inception_variants import INCEPTION_VARIANTS
from aadml.feature_extraction.weights.resolve import load_weights
from aadml.feature_extraction.weights.table import WEIGHTS, weights_folder
from aadml.feature_extraction.weights.tensor_files import write_tensors
from tests.feature_extraction.inception_files import published_tensors

BUILDS = {
    "inception-v3": published_tensors,
    "inception-v3-tv": published_tensors,
    "inception-v3-tf": partial(published_tensors, auxiliary=False),
    "inception-v3-tf-adv": partial(published_tensors, auxiliary=False),
    "inception-v3-gluon": partial(published_tensors, auxiliary=False),
    "inception-v3-2015": partial(published_tensors, 1008, auxiliary=False),
    "vggish": lambda seed: seeded(VGGish, seed=seed).state_dict(),
    "vggish-torch": lambda seed: seeded(VGGish, seed=seed).state_dict(),
}


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Give a function that puts random weights into the cache as one of the table's files, checksum and all."""
    monkeypatch.setenv("AADML_CACHE", str(tmp_path / "cache"))

    def installed(name):
        path = weights_folder() / WEIGHTS[name].file
        path.parent.mkdir(parents=True, exist_ok=True)
        state = BUILDS[name](seed=len(name))
        if path.suffix == ".safetensors":
            write_tensors(path, state)
        elif path.suffix == ".ckpt":
            with path.open("wb") as file:
                np.savez(file, **{key: value.numpy() for key, value in state.items()})
        else:
            torch.save(state, path)
        content = path.read_bytes()
        entry = WEIGHTS[name]
        md5, sha256 = hashlib.md5(content).hexdigest(), hashlib.sha256(content).hexdigest()
        changed = replace(entry, md5=entry.md5 and md5, sha256=entry.sha256 and sha256[:8])
        monkeypatch.setitem(WEIGHTS, name, changed)
        return path

    return installed


def built(name, choice):
    factory = vggish if name.startswith("vggish") else inception_v3
    return factory(weights=choice, device="cpu")


SAMPLE = ("inception-v3-gluon", "inception-v3-2015")  # vggish: 72 million weights, written twice and read three times


@pytest.mark.parametrize("name", [pytest.param(n, marks=[] if n in SAMPLE else pytest.mark.slow) for n in BUILDS])
def test_by_name_by_path_and_renamed_it_is_the_same(install, tmp_path, name, caplog):
    path = install(name)
    by_name = built(name, name)
    renamed = tmp_path / "mine.bin" if path.suffix != ".safetensors" else tmp_path / "mine.safetensors"
    renamed.write_bytes(path.read_bytes())
    caplog.clear()
    for choice in (path, renamed):
        assert built(name, str(choice)).parameters == by_name.parameters
    assert caplog.text == ""
    if name in INCEPTION_VARIANTS:
        assert {key: by_name.parameters[key] for key in vars(INCEPTION_VARIANTS[name])} == vars(
            INCEPTION_VARIANTS[name]
        )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["inception-v3-gluon"])
def test_the_features_are_equal_to_the_last_bit(install, tmp_path, name):
    path = install(name)
    frames = np.random.default_rng(0).integers(0, 256, (1, 299, 299, 3), dtype=np.uint8)
    expected = built(name, name).describe([frames])[0]
    renamed = path.rename(tmp_path / f"mine{path.suffix}")
    np.testing.assert_array_equal(built(name, str(renamed)).describe([frames])[0], expected)
    assert not np.array_equal(built(name, str(renamed)).describe([255 - frames])[0], expected)


def test_a_folder_with_one_weight_file_is_that_file(tmp_path, monkeypatch):
    monkeypatch.setenv("AADML_CACHE", str(tmp_path / "cache"))
    folder, tensors = tmp_path / "folder", {"a": torch.ones(1)}
    write_tensors(folder / "own.safetensors", tensors)
    (folder / "readme.txt").write_text("hello")
    (folder / "old.pth").mkdir()
    found = load_weights(str(folder), "vggish")
    assert (found.published, found.name) == (None, "own.safetensors")
    assert found.sha256 == hashlib.sha256((folder / "own.safetensors").read_bytes()).hexdigest()
    write_tensors(folder / "other.safetensors", tensors)
    choice = "the folder must contain one weight file (.safetensors, .pth, .pt, .ckpt, .npz), but contains"
    with pytest.raises(InputError) as caught:
        load_weights(str(folder), "vggish")
    names = "other.safetensors, own.safetensors"
    assert str(caught.value) == f"weights {folder}: {choice} {names}; pass the path of one weight file"
    torch.save(tensors, folder / WEIGHTS["vggish"].file)
    assert load_weights(str(folder), "vggish").name == WEIGHTS["vggish"].file
    for file in folder.iterdir():
        file.rmdir() if file.is_dir() else file.unlink()
    (folder / "model.h5").mkdir()
    with pytest.raises(InputError, match="but contains none; pass the path of one weight file"):
        load_weights(str(folder), "vggish")


def test_a_folder_of_a_saved_model_is_refused(tmp_path):
    (tmp_path / "saved_model.pb").write_bytes(b"")
    with pytest.raises(InputError, match=r"is a TensorFlow SavedModel, which .*; choose the extractor vggish-hub"):
        load_weights(str(tmp_path), "vggish")


@pytest.mark.parametrize("name", ["model.weights.h5", "model.keras", "old.h5"])
@pytest.mark.parametrize("in_folder", [False, True])
def test_weights_of_keras_are_refused_with_what_to_do(tmp_path, name, in_folder):
    if name.endswith(".keras"):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            for member in ("metadata.json", "config.json", "model.weights.h5"):
                archive.writestr(member, b"{}")
    else:
        with h5py.File(tmp_path / name, "w") as file:
            file["layers/conv2d/vars/0"] = np.ones((3, 3))
    with pytest.raises(InputError, match=r"Keras.* do not identify the layers .*; pass the published file") as caught:
        load_weights(str(tmp_path if in_folder else tmp_path / name), "inception-v3")
    assert name in str(caught.value)
