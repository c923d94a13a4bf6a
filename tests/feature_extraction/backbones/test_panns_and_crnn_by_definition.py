"""The networks against their layers written out in NumPy, float64, with seeded random weights."""

import numpy as np
import pytest
import torch

from aadml.feature_extraction.backbones.crnn import Crnn
from aadml.feature_extraction.backbones.panns import PANNS_NETWORKS, cnn14


def convolution(x, weight):
    """(c, t, f) with (o, c, h, w), zeros around."""
    height, width = weight.shape[2:]
    padded = np.pad(x, ((0, 0), (height // 2, height // 2), (width // 2, width // 2)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (height, width), axis=(1, 2))
    return np.einsum("ctfhw,ochw->otf", windows, weight, optimize=True)


def normalized(x, w, name):
    scale = w[f"{name}.weight"] / np.sqrt(w[f"{name}.running_var"] + 1e-5)
    return (x - w[f"{name}.running_mean"][:, None, None]) * scale[:, None, None] + w[f"{name}.bias"][:, None, None]


def windows_of(x, time, bands):
    c, t, f = x.shape
    cut = x[:, : t // time * time, : f // bands * bands]
    return cut.reshape(c, t // time, time, f // bands, bands)


def halved(x):
    return windows_of(x, 2, 2).mean(axis=(2, 4))


def relu(x):
    return np.maximum(x, 0)


def conv_block(x, w, name):
    x = relu(normalized(convolution(x, w[f"{name}.conv1.weight"]), w, f"{name}.bn1"))
    return relu(normalized(convolution(x, w[f"{name}.conv2.weight"]), w, f"{name}.bn2"))


def residual_block(x, w, name):
    shortcut = x
    if f"{name}.downsample.1.weight" in w:
        x = halved(x)
        shortcut = normalized(convolution(x, w[f"{name}.downsample.1.weight"]), w, f"{name}.downsample.2")
    out = relu(normalized(convolution(x, w[f"{name}.conv1.weight"]), w, f"{name}.bn1"))
    return relu(normalized(convolution(out, w[f"{name}.conv2.weight"]), w, f"{name}.bn2") + shortcut)


def trunk_of_cnn(x, w, blocks, pool_last=True):
    for i in range(1, blocks + 1):
        x = conv_block(x, w, f"conv_block{i}")
        x = halved(x) if i < blocks or pool_last else x
    return x


def trunk_of_resnet38(x, w):
    x = halved(conv_block(x, w, "conv_block1"))
    for stage, blocks in enumerate((3, 4, 6, 3), start=1):
        for i in range(blocks):
            x = residual_block(x, w, f"resnet.layer{stage}.{i}")
    return conv_block(halved(x), w, "conv_block_after1")


def panns(log_mel, w, trunk):
    x = normalized(log_mel.T[:, :, None], w, "bn0")[:, :, 0].T[None]
    over_bands = trunk(x, w).mean(axis=2)
    return over_bands.max(axis=1) + over_bands.mean(axis=1)


TRUNKS = {
    "cnn10": lambda x, w: trunk_of_cnn(x, w, 4),
    "cnn14": lambda x, w: trunk_of_cnn(x, w, 6),
    "resnet38": trunk_of_resnet38,
}


def seeded(network, scale=0.3):
    """Give every parameter and statistic a random value; return them in float64 by name."""
    generator = torch.Generator().manual_seed(3)
    for name, value in network.state_dict().items():
        if value.is_floating_point():
            draw = torch.randn(value.shape, generator=generator) * (scale if value.ndim > 1 else 0.1)
            value.copy_(draw + 1 if "bn" in name or "norms" in name else draw)
            if "var" in name:
                value.copy_(draw.abs() + 0.5)
    return {k: v.double().numpy() for k, v in network.double().eval().state_dict().items()}


@pytest.mark.parametrize("name", PANNS_NETWORKS)
def test_panns_equals_its_layers_written_out(name):
    network = PANNS_NETWORKS[name](width=4)
    weights = seeded(network)
    sound = np.random.default_rng(0).normal(-40, 10, (2, 141, 64))
    expected = np.stack([panns(item, weights, TRUNKS[name]) for item in sound])
    found = network(torch.from_numpy(sound)).detach().numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_cnn14_without_the_last_pooling_equals_its_layers_written_out():
    network = cnn14(width=2, pool_last=False)
    weights = seeded(network)
    sound = np.random.default_rng(1).normal(-40, 10, (70, 64))
    expected = panns(sound, weights, lambda x, w: trunk_of_cnn(x, w, 6, pool_last=False))
    np.testing.assert_allclose(network(torch.from_numpy(sound)[None])[0].detach().numpy(), expected, rtol=1e-9)


def sigmoid(x):
    return 0.5 * (1 + np.tanh(0.5 * x))


def gru(x, w, suffix):
    """(t, c) -> (t, h), one direction; gates in the order reset, update, new."""
    inner, outer = w[f"recurrent.weight_ih_l0{suffix}"], w[f"recurrent.weight_hh_l0{suffix}"]
    inner_bias, outer_bias = w[f"recurrent.bias_ih_l0{suffix}"], w[f"recurrent.bias_hh_l0{suffix}"]
    hidden = np.zeros(outer.shape[1])
    outputs = []
    for step in x:
        reset_i, update_i, new_i = np.split(inner @ step + inner_bias, 3)
        reset_h, update_h, new_h = np.split(outer @ hidden + outer_bias, 3)
        reset, update = sigmoid(reset_i + reset_h), sigmoid(update_i + update_h)
        hidden = (1 - update) * np.tanh(new_i + reset * new_h) + update * hidden
        outputs.append(hidden)
    return np.array(outputs)


def crnn(log_mel, w):
    x = log_mel[None]
    for i, pool in enumerate([(2, 4), None, (2, 4), None, (1, 4)]):
        x = convolution(normalized(x, w, f"norms.{i}"), w[f"convolutions.{i}.weight"])
        x = np.where(x > 0, x, 0.1 * x)
        if pool:
            x = (windows_of(x, *pool) ** 4).sum(axis=(2, 4)) ** 0.25
    steps = x[:, :, 0].T
    return np.concatenate([gru(steps, w, ""), gru(steps[::-1], w, "_reverse")[::-1]], axis=1)


def test_crnn_equals_its_layers_written_out():
    network = Crnn(channels=8, dimension=6)
    weights = seeded(network, scale=0.1)
    sound = np.random.default_rng(2).normal(-5, 2, (2, 61, 64))
    expected = np.stack([crnn(item, weights) for item in sound])
    found = network(torch.from_numpy(sound), pooled=True).detach()
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-8, atol=1e-12)
    stretched = torch.nn.functional.interpolate(found.transpose(1, 2), 61, mode="linear").transpose(1, 2)
    np.testing.assert_allclose(network(torch.from_numpy(sound)).detach(), stretched, rtol=1e-8, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", PANNS_NETWORKS)
def test_full_size_panns_equal_their_layers_written_out(name):
    network = PANNS_NETWORKS[name]()
    weights = seeded(network, scale=0.03)
    sound = np.random.default_rng(5).normal(-40, 10, (64, 64))
    expected = panns(sound, weights, TRUNKS[name])
    np.testing.assert_allclose(network(torch.from_numpy(sound)[None])[0].detach().numpy(), expected, rtol=1e-8)


@pytest.mark.slow
def test_full_size_crnn_equals_its_layers_written_out():
    network = Crnn()
    weights = seeded(network, scale=0.03)
    sound = np.random.default_rng(6).normal(-5, 2, (100, 64))
    found = network(torch.from_numpy(sound)[None], pooled=True)[0].detach()
    np.testing.assert_allclose(found.numpy(), crnn(sound, weights), rtol=1e-7, atol=1e-12)
