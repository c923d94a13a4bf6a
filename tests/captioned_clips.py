"""Small sets of captioned clips, as sounds or as videos, with the manifest of a user."""

import csv

import numpy as np

from aadml.data.samples.mp4 import write_mp4
from tests.sound_files import write_wav

SPLITS = {"train": 12, "valid": 12, "test": 12}
SUBJECTS, DEEDS = ("dog", "rain", "roof"), ("falls", "barks near", "is clapping loudly")


def write_captioned(folder, *, videos=False):
    """Write 36 clips with three captions each, and return the manifest."""
    folder.mkdir()
    generator, rows = np.random.default_rng(0), []
    for number, split in enumerate(split for split, count in SPLITS.items() for _ in range(count)):
        seconds = np.arange(4000) / 8000
        sound = 0.3 * np.sin(2 * np.pi * 200 * (1 + number % 8) * seconds) + 0.02 * generator.normal(size=4000)
        name = f"{number}.{'mp4' if videos else 'wav'}"
        if videos:
            blocks = np.kron(generator.integers(0, 256, (4, 4, 3)), np.ones((16, 16, 1))).astype(np.uint8)
            write_mp4(folder / name, np.stack([blocks] * 4), sound.astype(np.float32), frame_rate=8, rate=8000)
        else:
            write_wav(folder / name, 32767 * sound, 8000)
        captions = [f"the old {SUBJECTS[number % 3]} {deed}" for deed in DEEDS]
        rows.append([f"clip {number}", name, split, *captions])
    with (folder / "manifest.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["id", "media", "split", "caption_1", "caption_2", "caption_3"], *rows])
    return folder / "manifest.csv"
