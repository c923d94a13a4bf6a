import numpy as np
import pytest
import torch

from aadml.data.captions.captioned_sets import captioned_splits
from aadml.methods.method import Context
from tests.sound_files import write_wav

TONES = (300, 700, 1500, 3100, 6300)
PITCHES = ("very low", "low", "middle", "high", "very high")


def write_tone(path, frequency, seconds, seed):
    time = np.arange(int(seconds * 32_000)) / 32_000
    noise = np.random.default_rng(seed).normal(0, 0.02, len(time))
    write_wav(path, (0.5 * np.sin(2 * np.pi * frequency * time) + noise) * 20_000)


@pytest.fixture(scope="session")
def tones(tmp_path_factory):
    """Fifty short tones of five pitches, two captions each: a manifest with splits of 30, 10 and 10."""
    folder = tmp_path_factory.mktemp("tones")
    lines = ["id,media,label,split,caption_1,caption_2"]
    for i in range(50):
        pitch, split = i % 5, ("train", "train", "train", "valid", "test")[i // 10]
        write_tone(folder / f"{i}.wav", TONES[pitch] * (1 + 0.01 * (i // 5)), 0.2 + 0.02 * (i % 3), i)
        lines.append(f"t{i},{i}.wav,{pitch},{split},A {PITCHES[pitch]} tone.,The tone number {i} is {PITCHES[pitch]}")
    (folder / "manifest.csv").write_text("\n".join(lines) + "\n")
    return captioned_splits(folder / "manifest.csv")


@pytest.fixture
def context():
    """No dimensions: sound and captions are made batch by batch."""
    return Context({"audio": 0, "text": 0}, 30, seed=3)


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


SMALL = {"audio": "cnn10", "audio_width": 2, "augment": False, "text_layers": 1, "text_dimension": 16,
         "vocabulary": 120, "dropout": 0.0, "hidden": 16, "dimension": 16}  # fmt: skip


@pytest.fixture
def small():
    """Options of narrow towers."""
    return dict(SMALL)
