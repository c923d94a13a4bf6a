import importlib.util
import json
import os
import pickle
import subprocess
import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import get_args

import numpy as np
import pytest
import torch
from torch import nn

from aadml.feature_extraction.backbones import extractor
from aadml.feature_extraction.backbones import vggish as vggish_file
from aadml.feature_extraction.backbones.vggish import Variant, VGGish, vggish, vggish_patches, vggish_state
from aadml.feature_extraction.frontends.inference import seeded
from aadml.feature_extraction.frontends.log_mel import VGGISH, log_mel
from aadml.feature_extraction.frontends.quantization import quantize
from aadml.feature_extraction.frontends.whitening import vggish_pca
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.file_content import sha256
from aadml.feature_extraction.weights.tensor_files import read_tensors, write_tensors


def described(made, sounds):
    """What a job does: prepare each clip in a decoding process, describe several in the main one."""
    prepare = pickle.loads(pickle.dumps(made.prepare))
    return made.describe([prepare(sound) for sound in sounds])


TENSORFLOW = {
    "features.0": "vggish/conv1", "features.3": "vggish/conv2", "features.6": "vggish/conv3/conv3_1",
    "features.8": "vggish/conv3/conv3_2", "features.11": "vggish/conv4/conv4_1", "features.13": "vggish/conv4/conv4_2",
    "embeddings.0": "vggish/fc1/fc1_1", "embeddings.2": "vggish/fc1/fc1_2", "embeddings.4": "vggish/fc2",
}  # fmt: skip


def port() -> nn.Module:
    """The common PyTorch port's architecture, as nn.Sequential, with its ReLU at the end."""
    layers: list[nn.Module] = []
    width = 1
    for outputs in (64, "pool", 128, "pool", 256, 256, "pool", 512, 512, "pool"):
        if outputs == "pool":
            layers.append(nn.MaxPool2d(2, 2))
        else:
            layers += [nn.Conv2d(width, int(outputs), 3, padding=1), nn.ReLU()]
            width = int(outputs)
    linears = [nn.Linear(12288, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 128), nn.ReLU()]
    return nn.ModuleDict({"features": nn.Sequential(*layers), "embeddings": nn.Sequential(*linears)})


@pytest.fixture(scope="module")
def network() -> VGGish:
    return seeded(VGGish, 3).eval()


@pytest.fixture(scope="module")
def sound() -> np.ndarray:
    generator = np.random.default_rng(0)
    time = np.arange(40_000) / 16_000
    return (0.3 * np.sin(2 * np.pi * 440 * time) + 0.1 * generator.normal(size=len(time))).astype(np.float32)


@pytest.fixture(scope="module")
def own_file(network, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("vggish") / "own.safetensors"
    generator = np.random.default_rng(1)
    pca = {
        "pca_eigen_vectors": torch.from_numpy(generator.normal(size=(128, 128)).astype(np.float32) / 3),
        "pca_means": torch.from_numpy(generator.normal(size=(128, 1)).astype(np.float32)),
    }
    write_tensors(path, {**network.state_dict(), **pca})
    return path


@pytest.fixture(scope="module")
def embed(own_file):
    return partial(described, vggish(weights=str(own_file)))


def test_equals_the_layers_of_the_common_port_before_its_last_relu(network):
    with torch.device("meta"):  # no weights are drawn that are replaced at once
        theirs = port()
    theirs.load_state_dict(network.state_dict(), assign=True)
    patches = torch.randn(2, 96, 64, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        maps = theirs["features"](patches[:, None])
        flat = torch.stack([torch.stack([m[:, h, w] for h in range(6) for w in range(4)]).flatten() for m in maps])
        expected = theirs["embeddings"][:-1](flat)
        torch.testing.assert_close(network(patches), expected, rtol=1e-4, atol=1e-5)


def tensorflow_arrays(network) -> dict[str, torch.Tensor]:
    arrays = {}
    for name, tensor in network.state_dict().items():
        layer, _, kind = name.rpartition(".")
        turned = tensor.permute(2, 3, 1, 0) if tensor.ndim == 4 else tensor.T if tensor.ndim == 2 else tensor
        arrays[f"{TENSORFLOW[layer]}/{'weights' if kind == 'weight' else 'biases'}"] = turned.contiguous()
    return arrays


@pytest.mark.slow
def test_every_file_format_gives_back_the_same_network(network, own_file):
    port_file = {**network.state_dict(), "pproc.pca_means": torch.zeros(128, 1)}
    for tensors in (tensorflow_arrays(network), port_file, read_tensors(own_file)):
        state = vggish_state(tensors)
        assert state.keys() == network.state_dict().keys()
        assert all(torch.equal(state[name], tensor) for name, tensor in network.state_dict().items())


def test_a_file_of_another_network_is_refused_by_the_tensor_it_lacks(network):
    with pytest.raises(InputError, match=r"tensor features.0.weight is missing \(mismatched tensors: 18;"):
        vggish_state({"conv1.weight": torch.zeros(1)})
    with pytest.raises(InputError, match=r"features.0.weight has shape \(64, 3, 3, 3\) instead of \(64, 1, 3, 3\)"):
        vggish_state({**network.state_dict(), "features.0.weight": torch.zeros(64, 3, 3, 3)})


@pytest.mark.slow
def test_the_variants_are_their_formulas(own_file, embed, sound):
    rows = {name: described(vggish(variant=name, weights=str(own_file)), [sound])[0] for name in get_args(Variant)[1:]}
    tensors = read_tensors(own_file)
    plain = embed([sound])[0]
    assert (plain < 0).any()
    np.testing.assert_array_equal(rows["post-relu"], np.maximum(plain, 0))
    white = vggish_pca(plain, tensors["pca_eigen_vectors"].numpy(), tensors["pca_means"].numpy())
    np.testing.assert_array_equal(rows["pca"], white)
    np.testing.assert_array_equal(rows["pca-8bit"], quantize(white, rounding="floor"))


@pytest.mark.slow
def test_the_features_say_which_variant_weights_and_front_end_they_come_from(own_file):
    parameters = vggish(variant="pca", weights=str(own_file)).parameters
    assert parameters["variant"] == "pca"
    assert parameters["weights"] == sha256(own_file)
    assert parameters["front_end"] == asdict(VGGISH)
    assert parameters["patch_hop"] == 0.96


def test_ten_seconds_are_ten_patches():
    samples = torch.randn(160_000, generator=torch.Generator().manual_seed(0))
    bands = log_mel(samples, VGGISH)
    patches = vggish_patches(bands)
    assert patches.shape == (10, 96, 64)
    torch.testing.assert_close(patches.flatten(0, 1), bands[:960])


@pytest.mark.slow
def test_short_sound_is_filled_with_zeros_to_one_patch(embed, sound):
    padded = np.pad(sound[:700], (0, 15_600 - 700))
    np.testing.assert_array_equal(embed([sound[:700]])[0], embed([padded])[0])
    assert embed([sound[:0]])[0].shape == (1, 128)
    assert embed([sound[:15_600]])[0].shape == embed([sound[:30_000]])[0].shape == (1, 128)


@pytest.mark.slow
def test_a_clip_has_the_same_bits_whatever_clips_are_beside_it(embed, sound):
    clips = [sound, sound[:9_000], np.concatenate([sound[::-1]] * 6), sound[1000:]]
    together = embed(clips)
    for order in ([2, 0, 3, 1], [1], [3, 2]):
        for place, rows in zip(order, embed([clips[i] for i in order]), strict=True):
            np.testing.assert_array_equal(rows, together[place])


@pytest.mark.slow
def test_untrained_weights_are_the_same_every_time_and_disturb_no_other_randomness(sound):
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    untrained = vggish(weights="untrained")
    assert torch.equal(torch.rand(1), expected)
    assert untrained.parameters["weights"] == "untrained"
    first = described(untrained, [sound])[0]
    np.testing.assert_array_equal(first, described(vggish(weights="untrained"), [sound])[0])
    assert np.isfinite(first).all()
    assert first.std() > 0.1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"variant": "relu"}, "pass one of pre-activation, post-relu, pca, pca-8bit$"),
        ({"patch_hop": 0.48}, "vggish.patch_hop is 0.48, but this option of vggish was removed"),
        ({"pca": "pca.npz"}, 'vggish.pca is "pca.npz", but this option of vggish was removed'),
        ({"weights": "untrained", "variant": "pca"}, "PCA belongs to the published weights"),
        ({"weights": "nowhere.pth"}, "is neither a file nor the name of a published file"),
        ({"weights": "untrained", "device": "abacus"}, "choose from auto, cpu"),
        ({"varaint": "pca"}, "did you mean 'variant'?"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(options, message):
    with pytest.raises(InputError, match=message.replace("(", r"\(").replace("?", r"\?")) as caught:
        extractor("vggish", "audio", options)
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_equals_the_same_network_in_tensorflow_through_tensorflow_hub(network, sound, tmp_path):
    if importlib.util.find_spec("tensorflow_hub") is None:
        pytest.skip("tensorflow-hub is not installed")
    np.savez(tmp_path / "weights.npz", **{n: t.numpy() for n, t in tensorflow_arrays(network).items()})
    np.save(tmp_path / "sound.npy", sound)
    script = Path(__file__).with_name("vggish_in_tensorflow.py")
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path)],
        capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(root)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    expected = np.load(tmp_path / "tensorflow.npy")
    write_tensors(tmp_path / "own.safetensors", network.state_dict())
    ours = described(vggish(weights=str(tmp_path / "own.safetensors")), [sound])[0]
    assert ours.shape == expected.shape == (2, 128)
    assert np.abs(ours - expected).max() / np.abs(expected).max() < 1e-4
    np.testing.assert_array_equal(np.load(tmp_path / "extractor.npy"), expected)
    assert np.load(tmp_path / "short.npy").shape == (1, 128)
    provenance = json.loads((tmp_path / "provenance.json").read_text())
    assert provenance["weights"] == sha256(tmp_path / "saved_model")
    errors = json.loads((tmp_path / "errors.json").read_text())
    assert len(errors) == 3
    assert all("cannot be loaded (" in error and "\n" not in error for error in errors)
    state = vggish_state(read_tensors(tmp_path / "version1.ckpt"))
    assert all(torch.equal(state[key], tensor) for key, tensor in network.state_dict().items())


def test_the_tensors_of_tensorflow_and_of_the_port_become_one_state(monkeypatch):
    monkeypatch.setattr(vggish_file, "_CONVOLUTIONS", {0: (1, 2)})
    monkeypatch.setattr(vggish_file, "_LINEARS", {0: (3, 4)})
    port = {
        "features.0.weight": torch.arange(18.0).reshape(2, 1, 3, 3), "features.0.bias": torch.arange(2.0),
        "embeddings.0.weight": torch.arange(12.0).reshape(4, 3), "embeddings.0.bias": torch.arange(4.0),
    }  # fmt: skip
    tensorflow = {
        "vggish/conv1/weights": port["features.0.weight"].permute(2, 3, 1, 0).double(),
        "vggish/conv1/biases": port["features.0.bias"],
        "vggish/fc1/fc1_1/weights": port["embeddings.0.weight"].T, "vggish/fc1/fc1_1/biases": port["embeddings.0.bias"],
        "global_step": torch.zeros(1),
    }  # fmt: skip
    for tensors in (port, tensorflow):
        state = vggish_file.vggish_state(tensors)
        assert state.keys() == port.keys()
        assert all(
            torch.equal(state[name], values) and state[name].dtype == torch.float32 for name, values in port.items()
        )
    with pytest.raises(InputError):
        vggish_file.vggish_state({name: values for name, values in port.items() if name != "features.0.bias"})


def test_variants_differ_after_the_last_layer():
    generator = np.random.default_rng(0)
    rows = generator.normal(size=(3, 128)).astype(np.float32)
    tensors = {
        "pproc.pca_means": torch.from_numpy(generator.normal(size=(128, 1))),
        "pca_eigen_vectors": torch.eye(128),
    }
    matrices = vggish_file.pca_matrices(tensors)
    assert {name: (values.shape, values.dtype) for name, values in matrices.items()} == {
        "eigenvectors": ((128, 128), np.float64), "means": ((128,), np.float64)
    }  # fmt: skip
    assert vggish_file.pca_matrices({}) == {}
    found = {
        name: vggish_file._finished(rows, name, matrices) for name in ("pre-activation", "post-relu", "pca", "pca-8bit")
    }
    white = vggish_pca(rows, matrices["eigenvectors"], matrices["means"])
    np.testing.assert_array_equal(found["pre-activation"], rows)
    np.testing.assert_array_equal(found["post-relu"], np.where(rows > 0, rows, 0))
    np.testing.assert_array_equal(found["pca"], white)
    np.testing.assert_array_equal(found["pca-8bit"], quantize(white, rounding="floor"))
    assert found["pca-8bit"].dtype == np.float32


@pytest.mark.parametrize("own", [True, False])
def test_the_published_pca_is_read_if_the_weights_have_none(monkeypatch, own):
    pca = {"pca_eigen_vectors": torch.eye(128), "pca_means": torch.zeros(128)}
    files = {
        "vggish": SimpleNamespace(tensors=pca if own else {}, sha256="1", name="net"),
        "vggish-pca": SimpleNamespace(tensors=pca, sha256="2", name="pca"),
    }
    read = []
    monkeypatch.setattr(vggish_file, "load_weights", lambda *names: read.append(names) or files[names[1]])
    monkeypatch.setattr(vggish_file, "vggish_state", lambda _: {})
    monkeypatch.setattr(vggish_file, "loaded", lambda *_: "network")
    assert vggish_file._loaded("my.pt", "post-relu") == ("network", {"weights": "1"}, {"weight_file": "net"}, {})
    network, sums, names, matrices = vggish_file._loaded("my.pt", "pca-8bit")
    more = ({}, {}) if own else ({"pca": "2"}, {"pca_file": "pca"})
    assert (network, sums, names) == ("network", {"weights": "1"} | more[0], {"weight_file": "net"} | more[1])
    assert matrices.keys() == {"eigenvectors", "means"}
    assert read[1:] == [("my.pt", "vggish"), *([] if own else [("auto", "vggish-pca")])]
    files["vggish"].tensors = {"pca_means": torch.zeros(127)}
    with pytest.raises(InputError, match=r"vggish: net contains \{'means': \(127,\)\}, but must contain pca_eigen"):
        vggish_file._loaded("my.pt", "pca")
