"""Fingerprints of clips, stable under encoding, scaling and noise; 256 bytes per modality.

Fingerprints of the same recording are near each other. They contain no class and are never training data.

The fingerprint of sound is the loudness in 16 bands and 16 parts of the clip. The loudness is relative to the mean of
the eight largest values, with a floor of -12 dB, so that volume and weak noise have little effect. The loudness is
smoothed over time, because an encoder's padding shifts the sound. The fingerprint of frames consists of four gray
pictures of 8 x 8. These are the means of four parts of the clip, minus their common mean.
"""

from functools import cache
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy import fft

SIZE = 256
"""Bytes of a fingerprint; all are zero if nothing can be compared (silence, a picture of a single gray)."""

PARTS, _BANDS = 16, 16
"""Parts of the time (rows of the fingerprint of sound), and bands of frequency."""
_LOWEST, _HIGHEST = 100.0, 3500.0  # Hz
_RATE = 8000  # Hz, approximate rate to which sound is reduced first
_SECONDS = 0.06  # minimum length of a window
_DECIBELS, _STEPS = 12.0, 12.0  # range below the loudest part, and levels per decibel
_LOUDEST = 8  # number of loudest values whose mean is the reference
_SILENT = 1e-9
_BLOCK = 512  # windows transformed at once
MOMENTS, SIDE = 4, 8
"""Gray pictures of a fingerprint of frames, and the pixels of their sides."""
_GRAYS = np.array([0.299, 0.587, 0.114], dtype=np.float32)
_FLAT = 4.0  # gray levels between the darkest and the brightest pixel


def sound_fingerprint(samples: NDArray[np.float32], sample_rate: int) -> NDArray[np.uint8]:
    """Compute the fingerprint of sound.

    Args:
        samples: (s,) mono.
        sample_rate: sample rate in Hz; fingerprints of different rates are similar but not equal.

    Returns:
        (256,) levels of 16 parts of the time, 16 bands each; zeros for silence.
    """
    factor = max(1, sample_rate // _RATE)
    window, shape, bands = _window(sample_rate / factor)
    if factor > 1:
        padded = np.pad(samples, (0, -len(samples) % factor))
        samples = padded.reshape(-1, factor) @ np.full(factor, 1 / factor, dtype=np.float32)
    samples = np.pad(samples, (0, max(0, window - len(samples))))
    step = max(1, min(window, len(samples) // (4 * PARTS)))
    windows = np.lib.stride_tricks.sliding_window_view(samples, window)[::step]
    energies = [_power(windows[start : start + _BLOCK] * shape) @ bands for start in range(0, len(windows), _BLOCK)]
    energy = np.maximum(_means(np.concatenate(energies), PARTS), 0.0)  # (parts, bands)
    loudest = np.sort(energy, axis=None)[-_LOUDEST:].mean()
    if loudest <= _SILENT:
        return np.zeros(SIZE, dtype=np.uint8)
    level = 10 * np.log10(energy / loudest + 10 ** (-_DECIBELS / 10)) + _DECIBELS
    return _bytes(1 + _STEPS * (_smoothing() @ level))


def picture_fingerprint(frames: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Compute the fingerprint (256,) of RGB frames (t, height, width, 3); zeros for pictures of a single gray."""
    small = [cv2.resize(frame, (SIDE, SIDE), interpolation=cv2.INTER_AREA) for frame in frames]
    grays = _means(np.stack(small).astype(np.float32) @ _GRAYS, MOMENTS)
    if grays.max() - grays.min() < _FLAT:
        return np.zeros(SIZE, dtype=np.uint8)
    return _bytes(128 + grays - grays.mean())


def _power(windows: NDArray[np.float32]) -> NDArray[np.float32]:
    spectrum = fft.rfft(windows, axis=1)
    return np.asarray(spectrum.real**2 + spectrum.imag**2, dtype=np.float32)


@cache
def _smoothing() -> NDArray[np.float64]:
    """Return the matrix (parts, parts) that averages each part with its neighbors twice, with weights 1, 2, 1."""
    around = np.pad(np.eye(PARTS), ((1, 1), (0, 0)), mode="edge")
    once = (around[:-2] + 2 * around[1:-1] + around[2:]) / 4
    return np.asarray(once @ once, dtype=np.float64)


@cache
def _window(sample_rate: float) -> tuple[int, NDArray[np.float32], NDArray[np.float32]]:
    """Return the length of a window, its Hann weights (window,), and the weights of frequencies in bands (f, bands)."""
    window = 1 << int(np.ceil(np.log2(_SECONDS * sample_rate)))
    frequencies = np.fft.rfftfreq(window, 1 / sample_rate)[:, None]
    half = frequencies[1] / 2
    edges = np.geomspace(_LOWEST, min(_HIGHEST, 0.45 * sample_rate), _BANDS + 1)
    overlap = np.minimum(frequencies + half, edges[1:]) - np.maximum(frequencies - half, edges[:-1])
    return window, np.hanning(window).astype(np.float32), np.clip(overlap, 0, None).astype(np.float32)


def _means(rows: NDArray[Any], count: int) -> NDArray[np.float64]:
    """Return the means (count, ...) of rows (t, ...) over parts of equal length. A part may end within a row."""
    sums = np.concatenate([np.zeros((1, *rows.shape[1:])), np.cumsum(rows, axis=0, dtype=np.float64)])
    ends = np.linspace(0, len(rows), count + 1)
    before = np.floor(ends).astype(int)
    share = (ends - before).reshape(-1, *[1] * (rows.ndim - 1))
    at = sums[before] * (1 - share) + sums[np.minimum(before + 1, len(rows))] * share
    return np.asarray(np.diff(at, axis=0) * (count / len(rows)), dtype=np.float64)


def _bytes(values: NDArray[np.float64]) -> NDArray[np.uint8]:
    return np.clip(np.round(values), 1, 255).astype(np.uint8).ravel()
