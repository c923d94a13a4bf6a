import importlib.util
import os
import subprocess
import sys
import tarfile
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from aadml.feature_extraction.backbones import extractor
from aadml.feature_extraction.backbones.inception_v3 import (
    InceptionV3,
    folded,
    inception_v3,
    load_inception_v3,
    network_input,
)
from aadml.feature_extraction.frontends.inference import seeded
from aadml.feature_extraction.frontends.quantization import dequantize, quantize
from aadml.feature_extraction.frontends.whitening import Whitening
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.file_content import sha256
from aadml.feature_extraction.layers.inception_blocks import Conv, Mixed, Unit
from aadml.feature_extraction.layers.inception_variants import INCEPTION_VARIANTS, InceptionVariant, VariantOptions
from aadml.feature_extraction.weights.table import WEIGHTS
from aadml.feature_extraction.weights.tensor_files import read_tensors, write_tensors
from tests.feature_extraction.inception_files import heads


def randomized(network: nn.Module, seed: int = 0) -> nn.Module:
    """Batch statistics away from zero and one, as trained networks have them."""
    generator = torch.Generator().manual_seed(seed)
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_(0.0, 0.1, generator=generator)
            module.running_var.uniform_(0.8, 1.2, generator=generator)
            module.bias.data.normal_(0.0, 0.1, generator=generator)
    return network


@pytest.fixture(scope="module")
def whole() -> InceptionV3:
    return randomized(seeded(InceptionV3)).eval()


@pytest.fixture(scope="module")
def frames() -> np.ndarray:
    """Smooth pictures, so that borders and insides differ."""
    generator = np.random.default_rng(0)
    small = torch.from_numpy(generator.uniform(0, 255, (2, 3, 9, 9)).astype(np.float32))
    large = F.interpolate(small, (299, 299), mode="bicubic").clamp(0, 255)
    return np.ascontiguousarray(large.permute(0, 2, 3, 1).to(torch.uint8).numpy())


def test_has_torchvisions_580_entries_and_27161264_parameters_with_the_heads_that_files_have():
    network, beside = InceptionV3(), heads()
    assert len(network.state_dict()) + len(beside) == 580
    counts = [parameter.numel() for parameter in network.parameters()]
    counts += [tensor.numel() for name, tensor in beside.items() if "running" not in name and "tracked" not in name]
    assert sum(counts) == 27_161_264
    names = network.state_dict().keys()
    assert {"Conv2d_1a_3x3.conv.weight", "Mixed_6e.branch7x7dbl_5.bn.running_var"} <= names
    assert "Mixed_7c.branch3x3dbl_3b.conv.weight" in names
    assert network.state_dict()["Mixed_6b.branch7x7_2.conv.weight"].shape == (128, 128, 1, 7)


def test_a_block_is_its_branches_side_by_side():
    branches = (
        (Conv("one", 4, 1),),
        (Conv("in", 3, 1), (Conv("across", 2, (1, 3)), Conv("down", 2, (3, 1)))),
        ("average", Conv("pooled", 5, 1)),
    )
    block = randomized(seeded(partial(Mixed, 6, branches, pool_padding="excluded"))).eval()
    x = torch.randn(2, 6, 7, 5, generator=torch.Generator().manual_seed(0))

    def unit(name, x, padding):
        part = getattr(block, name)
        y = F.conv2d(x, part.conv.weight, padding=padding)
        y = (y - part.bn.running_mean[:, None, None]) / (part.bn.running_var[:, None, None] + 0.001).sqrt()
        return (y * part.bn.weight[:, None, None] + part.bn.bias[:, None, None]).clamp(min=0)

    inner = unit("in", x, 0)
    neighbors = torch.stack([F.pad(x, (1, 1, 1, 1))[:, :, i : i + 7, j : j + 5] for i in range(3) for j in range(3)])
    counts = torch.stack(
        [F.pad(torch.ones(7, 5), (1, 1, 1, 1))[i : i + 7, j : j + 5] for i in range(3) for j in range(3)]
    )
    expected = torch.cat(
        [
            unit("one", x, 0),
            unit("across", inner, (0, 1)),
            unit("down", inner, (1, 0)),
            unit("pooled", neighbors.sum(0) / counts.sum(0), 0),
        ],
        dim=1,
    )
    torch.testing.assert_close(block(x), expected, rtol=1e-4, atol=1e-5)
    counted = seeded(partial(Mixed, 6, branches, pool_padding="counted")).eval()
    counted.load_state_dict(block.state_dict())
    pooled = unit("pooled", neighbors.sum(0) / 9, 0)
    torch.testing.assert_close(counted(x)[:, -5:], pooled, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@torch.inference_mode()
def test_files_of_torchvision_and_timm_load_alike(whole, frames, tmp_path):
    images = network_input(torch.from_numpy(frames[:1]), transform_input=True)
    expected = whole(images)
    torch.save({**whole.state_dict(), **heads()}, tmp_path / "torchvision.pth")
    bare = {n: t for n, t in whole.state_dict().items() if "num_batches" not in n} | heads(auxiliary=False)
    write_tensors(tmp_path / "timm.safetensors", bare)
    other = {**{n: t for n, t in bare.items() if not n.startswith("fc.")}, "fc.weight": torch.zeros(1008, 2048)}
    write_tensors(tmp_path / "ported.safetensors", {**other, "fc.bias": torch.zeros(1008)})
    for file in ("torchvision.pth", "timm.safetensors", "ported.safetensors"):
        network = load_inception_v3(read_tensors(tmp_path / file), InceptionVariant())
        assert torch.equal(network(images), expected), file


def test_a_file_of_another_network_is_refused_by_name(whole):
    state = dict(whole.state_dict())
    lacking = {n: t for n, t in state.items() if n != "Mixed_5b.branch1x1.conv.weight"}
    with pytest.raises(InputError, match=r"tensor Mixed_5b.branch1x1.conv.weight is missing \(mismatched tensors: 1;"):
        load_inception_v3(lacking, InceptionVariant())
    with pytest.raises(InputError, match=r"Mixed_9z.weight is not a tensor of this network"):
        load_inception_v3({**state, "Mixed_9z.weight": torch.zeros(1)}, InceptionVariant())
    with pytest.raises(
        InputError, match=r"Conv2d_1a_3x3.conv.weight has shape \(32, 1, 3, 3\) instead of \(32, 3, 3, 3\)"
    ):
        load_inception_v3({**state, "Conv2d_1a_3x3.conv.weight": torch.zeros(32, 1, 3, 3)}, InceptionVariant())


@pytest.mark.slow
@torch.inference_mode()
def test_folding_the_normalizations_changes_nothing_but_rounding(whole, frames):
    network = InceptionV3().eval()
    network.load_state_dict(whole.state_dict())
    images = network_input(torch.from_numpy(frames[:1]), transform_input=True)
    before = network(images)
    after = folded(network)(images)
    assert not any(isinstance(module, nn.BatchNorm2d) for module in network.modules())
    assert sum(isinstance(module, Unit) for module in network.modules()) == 94
    torch.testing.assert_close(after, before, rtol=1e-3, atol=1e-5)


def test_transform_input_is_torchvisions_formula(frames):
    images = torch.from_numpy(frames).permute(0, 3, 1, 2).double() / 255
    mean, deviation = torch.tensor([0.485, 0.456, 0.406]).double(), torch.tensor([0.229, 0.224, 0.225]).double()
    normalized = (images - mean[:, None, None]) / deviation[:, None, None]
    transformed = normalized * (deviation[:, None, None] / 0.5) + ((mean - 0.5) / 0.5)[:, None, None]
    without = network_input(torch.from_numpy(frames), transform_input=False)
    with_it = network_input(torch.from_numpy(frames), transform_input=True)
    torch.testing.assert_close(without.double(), normalized, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(with_it.double(), transformed, rtol=1e-5, atol=1e-6)
    assert with_it.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.slow
def test_a_clip_has_the_same_bits_whatever_clips_are_beside_it(frames):
    describe = inception_v3(weights="untrained").describe
    clips = [frames, frames[:1, ::-1]]
    together = describe(clips)
    assert [rows.shape for rows in together] == [(2, 2048), (1, 2048)]
    np.testing.assert_array_equal(describe(clips[1:])[0], together[1])
    np.testing.assert_array_equal(describe(clips[::-1])[1], together[0])


@pytest.mark.slow
def test_bfloat16_points_the_same_way(frames):
    plain = inception_v3(weights="untrained").describe([frames])[0]
    half = inception_v3(weights="untrained", precision="bfloat16").describe([frames])[0]
    cosine = (plain * half).sum(1) / np.linalg.norm(plain, axis=1) / np.linalg.norm(half, axis=1)
    assert cosine.min() > 0.9995
    assert not np.array_equal(plain, half)


@pytest.mark.slow
def test_the_features_say_what_they_are(whole, tmp_path):
    write_tensors(tmp_path / "own.safetensors", {**whole.state_dict(), **heads()})
    parameters = inception_v3(
        weights=str(tmp_path / "own.safetensors"), variant=VariantOptions(pool_padding="excluded")
    ).parameters
    assert parameters["weights"] == sha256(tmp_path / "own.safetensors")
    assert (parameters["pool_padding"], parameters["transform_input"]) == ("excluded", True)
    assert (parameters["reduction"], parameters["precision"], parameters["side"]) == ("none", "float32", 299)
    assert inception_v3(weights="untrained").parameters["weights"] == "untrained"


def test_the_readings_are_of_files_in_the_table():
    assert INCEPTION_VARIANTS.keys() == {name for name in WEIGHTS if name.startswith("inception-v3")}


def reduced(**options):
    return inception_v3(weights="untrained", reduction="own-pca", **options)


@pytest.mark.slow
def test_the_own_pca_is_fitted_to_training_frames_alone_and_kept(monkeypatch):
    generator = np.random.default_rng(0)
    clips = [generator.normal(size=(n, 64)).astype(np.float32) for n in (50, 30, 53, 4)]
    splits = ["train", "test", "train", "valid"]
    assert reduced().dimension == 1024
    monkeypatch.setattr("aadml.feature_extraction.backbones.inception_v3.REDUCED", 16)
    rows, kept = fitted(reduced(), clips, splits)
    assert [part.shape for part in rows] == [(50, 16), (30, 16), (53, 16), (4, 16)]
    again = Whitening.of_arrays(kept)
    for part, clip in zip(rows, clips, strict=True):
        np.testing.assert_allclose(part, again.transform(clip), rtol=1e-5, atol=1e-6)
    other = [clips[0], clips[1] * 100 + 7, clips[2], clips[3]]
    np.testing.assert_array_equal(fitted(reduced(), other, splits)[0][0], rows[0])
    eight = fitted(reduced(eight_bit=True), clips, splits)[0][3]
    np.testing.assert_array_equal(eight, dequantize(quantize(rows[3], rounding="nearest")))


def fitted(made, clips, splits):
    kept = made.fit.arrays(clip for clip, split in zip(clips, splits, strict=True) if split == "train")
    return list(map(made.fit.transformation(kept), clips)), kept


def test_too_few_training_frames_for_1024_dimensions_are_refused():
    clips = [np.zeros((600, 2048), dtype=np.float32)] * 2
    with pytest.raises(InputError, match=r"there are 600 training frames, but at least 1,024 are needed"):
        fitted(reduced(), clips, ["train", "test"])


@pytest.mark.slow
def test_the_matrices_of_youtube_8m_are_applied_frame_by_frame(frames, tmp_path, monkeypatch):
    generator = np.random.default_rng(2)
    np.save(tmp_path / "mean.npy", generator.normal(size=(2048, 1)))
    np.save(tmp_path / "eigenvals.npy", generator.uniform(0.5, 1, size=(1024, 1)))
    np.save(tmp_path / "eigenvecs.npy", generator.normal(size=(1024, 2048)) / 45)
    path = tmp_path / "yt8m_pca.tgz"
    with tarfile.open(path, "w:gz") as archive:
        archive.add(tmp_path, arcname=".", filter=lambda member: None if member.name.endswith(".tgz") else member)
    monkeypatch.setattr("aadml.feature_extraction.backbones.inception_v3.weights_path", lambda name: path)
    made = inception_v3(weights="untrained", reduction="youtube-8m")
    plain = inception_v3(weights="untrained").describe([frames])[0]
    rows = made.describe([frames])[0]
    arrays = [np.load(tmp_path / f"{name}.npy") for name in ("mean", "eigenvecs", "eigenvals")]
    expected = (plain - arrays[0][:, 0]) @ arrays[1].T / np.sqrt(arrays[2][:, 0] + 1e-4)
    np.testing.assert_allclose(rows, expected, rtol=1e-3, atol=1e-4)
    assert made.dimension == 1024
    assert made.parameters["matrices"] == sha256(path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reduction": "pca"}, r"inception-v3\.reduction is \"pca\"; pass one of none, own-pca, youtube-8m"),
        ({"pool_padding": "some"}, r"inception-v3\.pool_padding is .* pass one of counted, excluded or null"),
        ({"last_pool": "some"}, r"inception-v3\.last_pool is \"some\"; pass one of average, max or null"),
        ({"transform_input": 1}, r"inception-v3\.transform_input is 1; pass true or false or null"),
        ({"precision": "float16"}, "pass one of float32, bfloat16, auto"),
        ({"eight_bit": True}, "but reduction is none; set reduction to own-pca or youtube-8m"),
        ({"matrices": "pca"}, 'inception-v3.matrices is "pca", but this option of inception-v3 was removed'),
        ({"weights": "inception-v4"}, "neither a file nor the name of a published file"),
        ({"wieghts": "auto"}, "did you mean 'weights'"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(options, message):
    with pytest.raises(InputError, match=message) as caught:
        extractor("inception-v3", "visual", options)
    assert "\n" not in str(caught.value)


@pytest.mark.slow
@torch.inference_mode()
def test_equals_kerass_network_with_the_same_weights(frames, tmp_path):
    if importlib.util.find_spec("keras") is None:
        pytest.skip("keras is not installed")
    np.save(tmp_path / "frames.npy", frames)
    script = Path(__file__).with_name("inception_in_keras.py")
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    done = subprocess.run([sys.executable, str(script), str(tmp_path)], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    arrays = np.load(tmp_path / "units.npz")
    results = {}
    for padding in ("excluded", "counted"):
        network = seeded(partial(InceptionV3, pool_padding=padding)).eval()
        units = [module for module in network.modules() if isinstance(module, Unit)]
        assert len(units) == 94
        for i, unit in enumerate(units):
            unit.conv.weight.copy_(torch.from_numpy(arrays[f"{i}.kernel"]).permute(3, 2, 0, 1))
            unit.bn.bias.copy_(torch.from_numpy(arrays[f"{i}.beta"]))
            unit.bn.running_mean.copy_(torch.from_numpy(arrays[f"{i}.mean"]))
            unit.bn.running_var.copy_(torch.from_numpy(arrays[f"{i}.variance"]))
        results[padding] = network(network_input(torch.from_numpy(frames), transform_input=True)).numpy()
    expected = np.load(tmp_path / "features.npy")
    scale = np.abs(expected).max()
    assert np.abs(results["excluded"] - expected).max() / scale < 1e-3
    assert np.abs(results["counted"] - expected).max() / scale > 1e-3  # the padding does matter
