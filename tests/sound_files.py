"""Wav files of one channel, of tones or noise."""

import wave

import numpy as np

RATE = 32_000


def write_wav(path, samples, rate=RATE):
    path.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, rate, len(samples), "NONE", ""))
        file.writeframes(samples.astype("<i2").tobytes())
    return str(path)


def tone(frequency, seconds=0.2):
    return 9000 * np.sin(2 * np.pi * frequency * np.arange(int(seconds * RATE)) / RATE)


def noise(samples, seed=0):
    return np.random.default_rng(seed).integers(-9000, 9000, samples)
