"""Features of VGGish and Inception-V3 by the published formulas, in NumPy, SciPy and PyTorch, without code of aadml.

Sources: tensorflow/models `vggish`, google/youtube-8m `feature_extractor`, torchvision and pytorch-fid.
"""

import numpy as np
import torch
from scipy.signal import get_window
from torch.nn import functional as F

CONVOLUTIONS = {0: (1, 64), 3: (64, 128), 6: (128, 256), 8: (256, 256), 11: (256, 512), 13: (512, 512)}
LINEARS = {0: (12288, 4096), 2: (4096, 4096), 4: (4096, 128)}


def vggish_weights(seed):
    """Return random weights under the names of the common PyTorch port."""
    generator = torch.Generator().manual_seed(seed)
    weights = {}
    for number, (before, after) in CONVOLUTIONS.items():
        weights[f"features.{number}.weight"] = (
            torch.randn(after, before, 3, 3, generator=generator) * (2 / 9 / before) ** 0.5
        )
        weights[f"features.{number}.bias"] = 0.05 * torch.randn(after, generator=generator)
    for number, (before, after) in LINEARS.items():
        weights[f"embeddings.{number}.weight"] = torch.randn(after, before, generator=generator) * (2 / before) ** 0.5
        weights[f"embeddings.{number}.bias"] = 0.05 * torch.randn(after, generator=generator)
    return weights


def log_mel(samples):
    """B.4: (f, 64) of samples at 16 kHz."""
    frames = np.stack([samples[i : i + 400] for i in range(0, len(samples) - 399, 160)]).astype(np.float64)
    magnitude = np.abs(np.fft.rfft(frames * get_window("hann", 400, fftbins=True), 512))
    mel = 1127 * np.log(1 + np.arange(257) * 16_000 / 512 / 700)
    edges = np.linspace(1127 * np.log(1 + 125 / 700), 1127 * np.log(1 + 7500 / 700), 66)
    weights = np.zeros((257, 64))
    for band in range(64):
        low, middle, high = edges[band : band + 3]
        weights[:, band] = np.maximum(0, np.minimum((mel - low) / (middle - low), (high - mel) / (high - middle)))
    weights[0] = 0
    return np.log(magnitude @ weights + 0.01)


@torch.inference_mode()
def vggish(samples, weights, hop=0.96):
    """Return (t, 128) before the last ReLU; `hop` in seconds."""
    bands, step = log_mel(samples), round(hop * 100)
    patches = np.stack([bands[i : i + 96] for i in range(0, len(bands) - 95, step)])
    x = torch.from_numpy(patches).float()[:, None]
    for number in CONVOLUTIONS:
        x = F.relu(F.conv2d(x, weights[f"features.{number}.weight"], weights[f"features.{number}.bias"], padding=1))
        if number in (0, 3, 8, 13):
            x = F.max_pool2d(x, 2, 2)
    x = x.permute(0, 2, 3, 1).reshape(len(x), -1)
    for number in LINEARS:
        x = F.linear(x, weights[f"embeddings.{number}.weight"], weights[f"embeddings.{number}.bias"])
        x = F.relu(x) if number != 4 else x
    return x.numpy().astype(np.float64)


def eight_bits(rows, rounding):
    return rounding((np.clip(rows, -2, 2) + 2) * 255 / 4)


def dequantized(q):
    return q * 4 / 255 + 4 / 512 - 2


@torch.inference_mode()
def inception(frames, weights, *, counted, last="average", transform_input=True):
    """Return (t, 2048) of frames (t, 299, 299, 3) uint8, with the weights under torchvision's names."""
    x = torch.from_numpy(frames).permute(0, 3, 1, 2).double()
    if transform_input:
        x = x / 127.5 - 1
    else:
        mean, deviation = (torch.tensor(v)[:, None, None] for v in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))
        x = (x / 255 - mean) / deviation

    def unit(name, x, stride=1, same=True):
        kernel = weights[f"{name}.conv.weight"]
        padding = tuple(size // 2 for size in kernel.shape[2:]) if same else 0
        x = F.conv2d(x, kernel, stride=stride, padding=padding)
        mean, variance, scale, shift = (
            weights[f"{name}.bn.{key}"][:, None, None] for key in ("running_mean", "running_var", "weight", "bias")
        )
        return F.relu((x - mean) / (variance + 0.001).sqrt() * scale + shift)

    def chain(block, x, *names):
        for name in names:
            x = unit(f"{block}.{name}", x)
        return x

    def average(x):
        return F.avg_pool2d(x, 3, 1, 1, count_include_pad=counted)

    x = unit("Conv2d_1a_3x3", x.float(), 2, same=False)
    x = unit("Conv2d_2b_3x3", unit("Conv2d_2a_3x3", x, same=False))
    x = unit("Conv2d_3b_1x1", F.max_pool2d(x, 3, 2))
    x = F.max_pool2d(unit("Conv2d_4a_3x3", x, same=False), 3, 2)
    for block in ("Mixed_5b", "Mixed_5c", "Mixed_5d"):
        parts = chain(block, x, "branch1x1"), chain(block, x, "branch5x5_1", "branch5x5_2")
        parts += (chain(block, x, "branch3x3dbl_1", "branch3x3dbl_2", "branch3x3dbl_3"),)
        x = torch.cat([*parts, chain(block, average(x), "branch_pool")], 1)
    inner = chain("Mixed_6a", x, "branch3x3dbl_1", "branch3x3dbl_2")
    left, right = (
        unit(f"Mixed_6a.{name}", y, 2, same=False) for name, y in (("branch3x3", x), ("branch3x3dbl_3", inner))
    )
    x = torch.cat([left, right, F.max_pool2d(x, 3, 2)], 1)
    for block in ("Mixed_6b", "Mixed_6c", "Mixed_6d", "Mixed_6e"):
        parts = chain(block, x, "branch1x1"), chain(block, x, "branch7x7_1", "branch7x7_2", "branch7x7_3")
        parts += (chain(block, x, *(f"branch7x7dbl_{number}" for number in range(1, 6))),)
        x = torch.cat([*parts, chain(block, average(x), "branch_pool")], 1)
    left = unit("Mixed_7a.branch3x3_2", chain("Mixed_7a", x, "branch3x3_1"), 2, same=False)
    right = chain("Mixed_7a", x, "branch7x7x3_1", "branch7x7x3_2", "branch7x7x3_3")
    x = torch.cat([left, unit("Mixed_7a.branch7x7x3_4", right, 2, same=False), F.max_pool2d(x, 3, 2)], 1)
    for block in ("Mixed_7b", "Mixed_7c"):
        one, two = chain(block, x, "branch3x3_1"), chain(block, x, "branch3x3dbl_1", "branch3x3dbl_2")
        pooled = F.max_pool2d(x, 3, 1, 1) if block == "Mixed_7c" and last == "max" else average(x)
        x = torch.cat(
            [
                chain(block, x, "branch1x1"), chain(block, one, "branch3x3_2a"), chain(block, one, "branch3x3_2b"),
                chain(block, two, "branch3x3dbl_3a"), chain(block, two, "branch3x3dbl_3b"),
                chain(block, pooled, "branch_pool"),
            ],
            1,
        )  # fmt: skip
    return x.mean((2, 3)).numpy().astype(np.float64)
