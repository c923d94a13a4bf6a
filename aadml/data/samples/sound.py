"""Sound synthesis: building blocks of the sounds of all events. Signals are float64 (samples,)."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Signal = NDArray[np.float64]

RATE = 16_000
"""Samples per second of every sample clip."""


def time_axis(seconds: float) -> Signal:
    """Return the time of each sample in seconds, (samples,)."""
    return np.arange(round(seconds * RATE)) / RATE


def oscillate(frequency: Signal | float, seconds: float) -> Signal:
    """Return a sine (samples,) with one `frequency` in Hz, or a frequency for each sample."""
    steps = np.broadcast_to(np.asarray(frequency, dtype=np.float64), time_axis(seconds).shape)
    return np.sin(2 * np.pi * np.cumsum(steps) / RATE)


def strike(frequency: float, seconds: float, *, drop: float = 0.0, decay: float = 6.0) -> Signal:
    """Return a decaying sine (samples,).

    The frequency falls from `frequency` (Hz) by the share `drop`. The amplitude falls from 1 to exp(-`decay`).
    """
    share = time_axis(seconds) / seconds
    return oscillate(frequency * (1 - drop * share), seconds) * np.exp(-decay * share) * _soft_start(share.size)


def hiss(generator: np.random.Generator, seconds: float, low: float, high: float, *, tilt: float = 0.0) -> Signal:
    """Return noise (samples,) between `low` and `high` Hz with root mean square 1.

    Args:
        generator: source of the randomness.
        seconds: length, in seconds.
        low: lower edge in Hz.
        high: upper edge in Hz.
        tilt: exponent of the fall of the amplitude with frequency: 0 white, 0.5 pink, 1 brown.
    """
    count = round(seconds * RATE)
    spectrum = np.fft.rfft(generator.standard_normal(count))
    frequency = np.fft.rfftfreq(count, 1 / RATE)
    spectrum *= (frequency >= low) & (frequency <= high)
    spectrum *= np.maximum(frequency, 20.0) ** -tilt
    signal = np.fft.irfft(spectrum, count)
    return np.asarray(signal / max(float(np.sqrt(np.mean(signal**2))), 1e-12))


def click(generator: np.random.Generator, seconds: float, low: float, high: float) -> Signal:
    """Return a burst of noise (samples,) between `low` and `high` Hz, with peak 1, that decays within `seconds`."""
    share = time_axis(seconds) / seconds
    burst: Signal = hiss(generator, seconds, low, high) * np.exp(-7 * share) * _soft_start(share.size)
    return burst / max(float(np.abs(burst).max()), 1e-12)


def lay(track: Signal, pieces: Iterable[tuple[float, Signal]]) -> Signal:
    """Return `track` with each (start in seconds, piece) added; parts outside the track are cut off."""
    mix = track.copy()
    for start, piece in pieces:
        first = round(start * RATE)
        begin, end = max(first, 0), min(first + piece.size, mix.size)
        if end > begin:
            mix[begin:end] += piece[begin - first : end - first]
    return mix


def loudness(signal: Signal) -> float:
    """Return the root mean square of the loudest quarter of a second, so that pauses do not lower the loudness."""
    window = min(RATE // 4, signal.size)
    energy = np.concatenate([[0.0], np.cumsum(signal**2)])
    return float(np.sqrt(max((energy[window:] - energy[:-window]).max(), 0.0) / window))


def at_level(signal: Signal, decibel: float) -> Signal:
    """Return `signal` scaled to a loudness of `decibel` relative to 1; silence is not changed."""
    return signal * (10 ** (decibel / 20) / max(loudness(signal), 1e-9))


def _soft_start(count: int) -> Signal:
    return np.minimum(np.arange(count) / 16.0, 1.0)
