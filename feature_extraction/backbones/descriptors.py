"""Descriptors without weights: statistics of a log-mel spectrogram, and gradients and colors of frames.

Descriptors are computed in decoding processes, which do not import torch. The import of torch would take seconds and
200 MB in each process.
"""

from dataclasses import asdict

import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.backbones import Description, Extractor, FrameRate
from aadml.feature_extraction.frontends.log_mel import DESCRIPTOR, filled_log_mel
from aadml.feature_extraction.media import Frames, Sound

PATCH = 96  # spectrogram frames per row of features: 0.96 s, as in VGGish
SIDE = 64  # frames are resized to SIDE x SIDE pixels
CELL, ANGLES = 8, 9  # side of a cell in pixels, unsigned directions per cell: 8 x 8 x 9 = 576 numbers
TILE = 16  # side of a tile in pixels
HUES, LEVELS = 12, 8  # bins per tile: 4 x 4 x (12 hues + 8 saturations + 8 values) = 448 numbers


def log_mel() -> Extractor:
    """Build the extractor of mean and standard deviation of 64 log-mel bands of sound (128-d).

    A row of features covers about 0.96 s. Pooling computes mean and standard deviation over the whole clip.

    Returns:
        The extractor. It accepts sound of any length, and pads sound shorter than one window with zeros.
    """
    return Extractor(
        name="log-mel",
        modality="audio",
        dimension=2 * DESCRIPTOR.bands,
        inputs=Sound(DESCRIPTOR.sample_rate),
        parameters={
            "statistics": "mean and standard deviation of log-mel bands",
            "log_mel": asdict(DESCRIPTOR),
            "patch": PATCH,
            "weights": None,
        },
        prepare=describe_sound,
        begins=patch_times,
        pool=pool_statistics,
    )


def hog_color(*, frames_per_second: FrameRate = 1.0) -> Extractor:
    """Build the extractor of histograms of frames (1024-d), with 576 values of gradients and 448 values of colors.

    Args:
        frames_per_second: frames per second to use; at most the first 300 frames of a clip are used.

    Returns:
        The extractor. The features of a clip are the mean over the frames.
    """
    return Extractor(
        name="hog-color",
        modality="visual",
        dimension=(SIDE // CELL) ** 2 * ANGLES + (SIDE // TILE) ** 2 * (HUES + 2 * LEVELS),
        inputs=Frames(frames_per_second=frames_per_second, height=SIDE, width=SIDE),
        parameters={
            "frames_per_second": frames_per_second,
            "side": SIDE,
            "gradients": {"cell": CELL, "angles": ANGLES, "normalization": "3 x 3 cells"},
            "colors": {"tile": TILE, "hues": HUES, "saturations": LEVELS, "values": LEVELS, "root": True},
            "weights": None,
        },
        prepare=describe_frames,
    )


def describe_sound(samples: NDArray[np.float32]) -> Description:
    """Compute the means and standard deviations of 64 log-mel bands in each patch of sound.

    Args:
        samples: (s,) mono at 16 kHz. The log-mel spectrogram is divided into patches of nearly equal lengths.

    Returns:
        (t, 128), a row for each patch: 64 means, then 64 standard deviations.
    """
    bands = filled_log_mel(samples, DESCRIPTOR, DESCRIPTOR.window)
    patches = np.array_split(bands, max(1, round(len(bands) / PATCH)))
    rows = [np.concatenate([patch.mean(axis=0), patch.std(axis=0)]) for patch in patches]
    return np.asarray(rows, dtype=np.float32)


def patch_times(rows: int, seconds: float) -> NDArray[np.float64]:
    """Compute the start times (rows,), in seconds, of the patches of `describe_sound` in a clip of length `seconds`."""
    samples = max(round(seconds * DESCRIPTOR.sample_rate), DESCRIPTOR.window)
    bands = np.array_split(np.arange(1 + (samples - DESCRIPTOR.window) // DESCRIPTOR.hop), rows)
    return np.asarray([patch[0] for patch in bands]) * (DESCRIPTOR.hop / DESCRIPTOR.sample_rate)


def pool_statistics(description: Description) -> NDArray[np.float32]:
    """Combine the statistics (t, 128) of patches into statistics (128,) of the clip, by the law of total variance."""
    means, deviations = np.split(description.astype(np.float64), 2, axis=1)
    variance = (deviations**2).mean(axis=0) + means.var(axis=0)
    return np.concatenate([means.mean(axis=0), np.sqrt(variance)]).astype(np.float32)


def describe_frames(frames: NDArray[np.uint8]) -> Description:
    """Compute histograms (t, 1024) of RGB frames (t, 64, 64, 3): 576 values of gradients, then 448 of colors."""
    colors = frames.astype(np.float32) / np.float32(255)
    return np.concatenate([_gradients(colors), _colors(colors)], axis=1).astype(np.float32)


def _gradients(colors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Compute sums (t, 576) of gradient magnitudes by cell and unsigned direction for frames (t, 64, 64, 3).

    The sums of a cell are divided by the root mean energy of the block of 3 x 3 cells around the cell.
    """
    gray = colors @ np.array([0.299, 0.587, 0.114], dtype=np.float32)  # (t, side, side)
    padded = np.pad(gray, ((0, 0), (1, 1), (1, 1)), mode="edge")
    across, down = padded[:, 1:-1, 2:] - padded[:, 1:-1, :-2], padded[:, 2:, 1:-1] - padded[:, :-2, 1:-1]
    magnitude = np.hypot(across, down)
    position = (np.arctan2(down, across) % np.pi) * np.float32(ANGLES / np.pi) - 0.5
    lower = np.floor(position)
    share = position - lower
    first = lower.astype(np.int64) % ANGLES
    low = _histograms(first, magnitude * (1 - share), CELL, ANGLES)
    cells = low + _histograms((first + 1) % ANGLES, magnitude * share, CELL, ANGLES)  # (t, 8, 8, 9)
    energy = np.pad((cells**2).sum(axis=-1), ((0, 0), (1, 1), (1, 1)), mode="edge")
    around = np.lib.stride_tricks.sliding_window_view(energy, (3, 3), axis=(1, 2)).mean(axis=(-2, -1))
    normal: NDArray[np.float32] = cells / np.sqrt(around + 0.01)[..., None]
    return normal.reshape(len(colors), -1)


def _colors(colors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Compute the square roots (t, 448) of the histograms of hue, saturation and value in each tile.

    Hues are weighted by chroma.

    Args:
        colors: (t, 64, 64, 3) RGB values from 0 to 1.
    """
    value, low = colors.max(axis=-1), colors.min(axis=-1)
    chroma = value - low
    red, green, blue = np.moveaxis(colors, -1, 0)
    scale = np.maximum(chroma, 1e-6)
    warm, cold = (green - blue) / scale, np.where(value == green, 2 + (blue - red) / scale, 4 + (red - green) / scale)
    hue = np.where(value == red, warm, cold)  # in sixths of the circle
    saturation = chroma / np.maximum(value, 1e-6)
    even = np.ones_like(value)
    parts = [
        _histograms((hue * (HUES / 6)).astype(np.int64) % HUES, chroma, TILE, HUES),
        _histograms(np.minimum(saturation * LEVELS, LEVELS - 1).astype(np.int64), even, TILE, LEVELS),
        _histograms(np.minimum(value * LEVELS, LEVELS - 1).astype(np.int64), even, TILE, LEVELS),
    ]
    histograms = np.concatenate(parts, axis=-1) / (TILE * TILE)
    return np.sqrt(histograms).reshape(len(colors), -1)


def _histograms(bins: NDArray[np.int64], weights: NDArray[np.float32], size: int, count: int) -> NDArray[np.float32]:
    """Compute sums (t, side / size, side / size, count) of weights (t, side, side).

    A sum belongs to one square of `size` x `size` pixels and to one of `count` bins. The array `bins`
    (t, side, side) contains the bin of each pixel.
    """
    t, side = bins.shape[0], bins.shape[1] // size
    rows = np.arange(bins.shape[1]) // size
    square = (np.arange(t)[:, None, None] * side + rows[:, None]) * side + rows
    sums = np.bincount((square * count + bins).ravel(), weights.ravel(), t * side * side * count)
    return sums.reshape(t, side, side, count).astype(np.float32)
