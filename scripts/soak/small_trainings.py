"""Settings that reduce the preset of every method to a small training run, and captioned tones as data."""

import csv
import wave
from pathlib import Path

import numpy as np

_NARROW = ["method.text_dimension=16", "training.batch=12"]
_TOWERS = [*_NARROW, "method.audio_width=2", "method.text_layers=1", "method.hidden=16", "method.dimension=16",
           "method.audio=cnn10"]  # fmt: skip
_NETWORK = ["network.hidden=[8]"]
_HIDDEN = ["method.hidden=[8]"]

SETTINGS: dict[str, list[str]] = {
    "aadml": _NETWORK,
    "cctl": _NETWORK,
    "cca": ["method.dimension=4"],
    "c-cca": ["method.dimension=4"],
    "tnn-c-cca": [*_HIDDEN, "method.dimension=4"],
    "dcca": ["method.outputs=4", "method.dimension=4"],
    "c-dcca": [*_HIDDEN, "method.outputs=4", "method.dimension=4", "training.batch=24"],
    "vae-cca": ["method.hidden=8", "method.inner=6", "method.dimension=4"],
    "clip": [*_HIDDEN, "method.dimension=8"],
    "pairs": [*_NETWORK, "method.dimension=8", "training.criterion=recall@3"],
    "dcil": [*_HIDDEN, "method.dimension=8"],
    "dscmr": [*_HIDDEN, "method.dimension=8"],
    "agah": ["method.hidden=[8, 8]", "method.dimension=8"],
    "bic-net": [*_HIDDEN, "method.dimension=8", "method.tokens=2", "method.depth=1"],
    "eics": [*_HIDDEN, "method.explicit=8", *_NETWORK],
    "tlca": _NETWORK,
    "video-adviser-lite": [*_HIDDEN, *_NETWORK],
    "msnsca": ["method.visual_hidden=8", "method.width=8"],
    "audio-text": _TOWERS,
    "3cmlf": [*_TOWERS, "method.shares=[1, 1, 1]", "method.ancillary_epochs=1", "training.batch=5"],
    "xie": [*_NARROW, "method.channels=8"],
}
"""Method -> settings that reduce its preset."""

STAGED = ("tlca", "video-adviser-lite", "dcil", "3cmlf")
"""Methods that train in stages: three epochs instead of two."""

OF_SOUND = {"audio-text": "audio_text", "3cmlf": "3cmlf", "xie": "xie"}
"""Methods of captioned sound, and their presets."""


def write_tones(manifest: Path) -> Path:
    """Write a manifest of 18 captioned tones, and the tones next to it: 10 train, 4 valid, 4 test."""
    manifest.parent.mkdir(parents=True, exist_ok=True)
    rows = [["id", "media", "label", "split", "caption_1", "caption_2"]]
    for i in range(18):
        time = np.arange(6400) / 32_000
        samples = 9000 * np.sin(2 * np.pi * (200 + 150 * i) * time)
        with wave.open(str(manifest.parent / f"{i}.wav"), "wb") as file:
            file.setparams((1, 2, 32_000, len(samples), "NONE", ""))
            file.writeframes(samples.astype("<i2").tobytes())
        split = "train" if i < 10 else "valid" if i < 14 else "test"
        rows.append([f"t{i}", f"{i}.wav", "tone", split, f"Tone number {i}.", f"A tone, {i} of eighteen"])
    with manifest.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return manifest
