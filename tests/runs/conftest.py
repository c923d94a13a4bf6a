import csv
import wave

import numpy as np
import pytest


@pytest.fixture(scope="module")
def manifest(tmp_path_factory):
    """Thirty short tones with two captions each: 18 to train, 6 to validate, 6 to test."""
    return write_tones(tmp_path_factory.mktemp("tones"), train=18)


@pytest.fixture(scope="module")
def large_manifest(tmp_path_factory):
    """As `manifest`, with 34 tones to train: more pairs than a batch of 64."""
    return write_tones(tmp_path_factory.mktemp("tones"), train=34)


def write_tones(folder, *, train):
    rows = [["id", "media", "label", "split", "caption_1", "caption_2"]]
    for i in range(train + 12):
        time = np.arange(6400) / 32_000
        samples = 9000 * np.sin(2 * np.pi * (200 + 150 * i) * time)
        with wave.open(str(folder / f"{i}.wav"), "wb") as file:
            file.setparams((1, 2, 32_000, len(samples), "NONE", ""))
            file.writeframes(samples.astype("<i2").tobytes())
        split = "train" if i < train else "valid" if i < train + 6 else "test"
        rows.append([f"t{i}", f"{i}.wav", "tone", split, f"Tone number {i}.", f"A tone, {i} of thirty"])
    with (folder / "manifest.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return folder / "manifest.csv"
