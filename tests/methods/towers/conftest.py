import csv
from fractions import Fraction

import av
import numpy as np
import pytest
import torch

from tests.feature_extraction.hub import tiny

CLASSES = ("low", "middle", "high")
RATE = 8000


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def videos(tmp_path_factory):
    """Thirty videos of a second, a tone and a color of each of three classes: 18 to train, 6 to validate, 6 to test."""
    folder = tmp_path_factory.mktemp("videos")
    rows = [["id", "media", "label", "split", "caption"]]
    for number in range(30):
        kind, split = number % 3, "train" if number < 18 else "valid" if number < 24 else "test"
        write_video(folder / f"{number}.mp4", kind, number)
        rows.append([f"v{number}", f"{number}.mp4", CLASSES[kind], split, f"a dog barks {number}"])
    with (folder / "manifest.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return folder / "manifest.csv"


def write_video(path, kind, seed):
    draw = np.random.default_rng(seed)
    time = np.arange(RATE) / RATE
    sound = 0.4 * np.sin(2 * np.pi * (200, 700, 2000)[kind] * time) + draw.normal(0, 0.02, RATE)
    with av.open(str(path), "w") as file:
        video, audio = file.add_stream("mpeg4", rate=4), file.add_stream("aac", rate=RATE, layout="mono")
        video.width, video.height, video.pix_fmt = 64, 48, "yuv420p"
        for number in range(4):
            picture = draw.integers(0, 80, (48, 64, 3)).astype(np.uint8)
            picture[..., kind] += 150
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
            frame.pts, frame.time_base = number, Fraction(1, 4)
            file.mux(video.encode(frame))
        frame = av.AudioFrame.from_ndarray(sound.astype(np.float32)[None], format="fltp", layout="mono")
        frame.sample_rate, frame.pts, frame.time_base = RATE, 0, Fraction(1, RATE)
        file.mux(audio.encode(frame))
        for stream in (video, audio):
            file.mux(stream.encode(None))


@pytest.fixture(scope="session")
def networks(tmp_path_factory):
    """Folders of a tiny sound network and of a tiny one of pictures and text."""
    folder = tmp_path_factory.mktemp("networks")
    return {name: tiny.written(name, folder) for name in ("wav2vec2", "clip")}


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory):
    place = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AADML_CACHE", str(place))
        patch.setenv("HF_HUB_OFFLINE", "1")
        yield place


@pytest.fixture
def settings(networks):
    """Settings of small methods behind both networks."""
    return {
        "towers.audio": f"hf:{networks['wav2vec2']}", "towers.visual": f"hf:{networks['clip']}",
        "network.hidden": [8], "training.batch": 6, "training.learning_rate": 1e-3, "training.criterion": "auto",
    }  # fmt: skip
