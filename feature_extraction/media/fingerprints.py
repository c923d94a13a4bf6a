"""Fingerprints by which a clip is known again after it was encoded anew, scaled or made noisy; 256 bytes a modality.

They say nothing of a class and are never trained on: two fingerprints are near where sound or picture is the same
recording. Sound: loudness in 16 bands and 16 parts of the clip, relative to the loudest, all that is 12 dB below it
taken as equal, so that neither volume nor noise count; smoothed over time, so that a shift by an encoder's padding does
not either. Picture: gray pictures of 8 x 8, the means of four parts of the clip, less their common mean.
"""

from functools import cache
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy import fft

SIZE = 256
"""Bytes of a fingerprint; all zero where there is nothing to compare: silence, a picture of one gray."""

_PARTS, _BANDS = 16, 16
_LOWEST, _HIGHEST = 100.0, 3500.0  # Hz
_RATE = 8000  # Hz, about: sound is thinned out to it first
_SECONDS = 0.06  # of a window, at least
_DECIBELS, _STEPS = 12.0, 12.0  # what counts below the loudest, and levels of each decibel
_LOUDEST = 8  # places whose mean is called the loudest
_SILENT = 1e-9
_BLOCK = 512  # windows transformed at once
_MOMENTS, _SIDE = 4, 8
_GRAYS = np.array([0.299, 0.587, 0.114], dtype=np.float32)
_FLAT = 4.0  # levels of gray between the darkest and the brightest place


def sound_fingerprint(samples: NDArray[np.float32], sample_rate: int) -> NDArray[np.uint8]:
    """Take the fingerprint of sound.

    Args:
        samples: (s,) mono.
        sample_rate: in Hz; fingerprints of different rates are alike but not equal.

    Returns:
        (256,).
    """
    thinner = max(1, sample_rate // _RATE)
    window, shape, bands = _window(sample_rate / thinner)
    if thinner > 1:
        rest = -len(samples) % thinner
        whole = np.pad(samples, (0, rest)) if rest else samples
        samples = whole.reshape(-1, thinner) @ np.full(thinner, 1 / thinner, dtype=np.float32)
    if len(samples) < window:
        samples = np.pad(samples, (0, window - len(samples)))
    step = max(1, min(window, len(samples) // (4 * _PARTS)))
    windows = np.lib.stride_tricks.sliding_window_view(samples, window)[::step]
    energies = [_power(windows[start : start + _BLOCK] * shape) @ bands for start in range(0, len(windows), _BLOCK)]
    energy = np.maximum(_means(np.concatenate(energies), _PARTS), 0.0)  # (parts, bands)
    loudest = np.sort(energy, axis=None)[-_LOUDEST:].mean()
    if loudest <= _SILENT:
        return np.zeros(SIZE, dtype=np.uint8)
    level = 10 * np.log10(energy / loudest + 10 ** (-_DECIBELS / 10)) + _DECIBELS
    return _bytes(1 + _STEPS * (_smoothing() @ level))


def picture_fingerprint(frames: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Take the fingerprint of frames (t, height, width, 3) RGB: (256,)."""
    small = [cv2.resize(frame, (_SIDE, _SIDE), interpolation=cv2.INTER_AREA) for frame in frames]
    grays = _means(np.stack(small).astype(np.float32) @ _GRAYS, _MOMENTS)
    if grays.max() - grays.min() < _FLAT:
        return np.zeros(SIZE, dtype=np.uint8)
    return _bytes(128 + grays - grays.mean())


def _power(windows: NDArray[np.float32]) -> NDArray[np.float32]:
    spectrum = fft.rfft(windows, axis=1)
    return np.asarray(spectrum.real**2 + spectrum.imag**2, dtype=np.float32)


@cache
def _smoothing() -> NDArray[np.float64]:
    """Give the matrix (parts, parts) that twice averages each part with its neighbors, weighted 1, 2, 1."""
    around = np.pad(np.eye(_PARTS), ((1, 1), (0, 0)), mode="edge")
    once = (around[:-2] + 2 * around[1:-1] + around[2:]) / 4
    return np.asarray(once @ once, dtype=np.float64)


@cache
def _window(sample_rate: float) -> tuple[int, NDArray[np.float32], NDArray[np.float32]]:
    """Give the length of a window, its shape (window,), and what of each frequency goes into which band (f, bands)."""
    window = 1 << int(np.ceil(np.log2(_SECONDS * sample_rate)))
    frequencies = np.fft.rfftfreq(window, 1 / sample_rate)[:, None]
    half = frequencies[1] / 2
    edges = np.geomspace(_LOWEST, min(_HIGHEST, 0.45 * sample_rate), _BANDS + 1)
    overlap = np.minimum(frequencies + half, edges[1:]) - np.maximum(frequencies - half, edges[:-1])
    return window, np.hanning(window).astype(np.float32), np.clip(overlap, 0, None).astype(np.float32)


def _means(rows: NDArray[Any], count: int) -> NDArray[np.float64]:
    """Average rows (t, ...) over `count` equal parts of the time, whose ends may lie within a row: (count, ...)."""
    sums = np.concatenate([np.zeros((1, *rows.shape[1:])), np.cumsum(rows, axis=0, dtype=np.float64)])
    ends = np.linspace(0, len(rows), count + 1)
    before = np.floor(ends).astype(int)
    share = (ends - before).reshape(-1, *[1] * (rows.ndim - 1))
    at = sums[before] * (1 - share) + sums[np.minimum(before + 1, len(rows))] * share
    return np.asarray(np.diff(at, axis=0) * (count / len(rows)), dtype=np.float64)


def _bytes(values: NDArray[np.float64]) -> NDArray[np.uint8]:
    return np.clip(np.round(values), 1, 255).astype(np.uint8).ravel()
