import os
import shutil
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from tests.feature_extraction.small_jobs import BAD, LACKING, write_manifest

Render = Callable[..., Path]


@pytest.fixture(scope="session")
def render() -> Render:
    """Give a function that renders a small real media file: a tone, and frames whose gray is 40 x the second."""

    def rendered(
        path: Path,
        *,
        seconds: float = 1.2,
        tone: float | None = 440.0,
        channels: int = 1,
        rate: int = 16_000,
        picture: bool = True,
        size: tuple[int, int] = (64, 48),
        frames_per_second: int = 10,
        codecs: tuple[str, str] = ("mpeg4", "aac"),
    ) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        with av.open(str(path), "w") as container:
            streams = []  # all of them are declared before the first packet writes the header
            if picture:
                stream = container.add_stream(codecs[0], rate=frames_per_second)
                stream.width, stream.height = size
                stream.pix_fmt = "yuv420p"
                stream.bit_rate = 400_000
                streams.append((stream, _pictures(size, frames_per_second, round(seconds * frames_per_second))))
            if tone is not None:
                stream = container.add_stream(codecs[1], rate=rate)
                stream.layout = "mono" if channels == 1 else "stereo"
                streams.append((stream, _sounds(stream.format.name, tone, rate, channels, round(seconds * rate))))
            for stream, frames in streams:
                for frame in frames:
                    container.mux(stream.encode(frame))
                container.mux(stream.encode(None))
        return path

    return rendered


@pytest.fixture(scope="session")
def collection(tmp_path_factory, render):
    """A manifest of good and bad clips, some under odd names."""
    folder = tmp_path_factory.mktemp("collection")
    good = {f"good {number}": f"clip {number}.mp4" for number in range(5)}
    good |= {"-dash": "-dash.mp4", "new\nline": "new\nline.mp4", "ünï": os.fsdecode(b"\xff\xfe.mp4")}
    for number, name in enumerate(good.values()):
        render(folder / name, seconds=1.0 + 0.2 * number, tone=300.0 + 100 * number)
    (folder / "text.mp4").write_text("no media at all")
    (folder / "list.m3u8").write_text("#EXTM3U\n#EXTINF:1,\nclip 0.mp4\n")
    render(folder / "mute.mp4", tone=None)
    render(folder / "blind.m4a", picture=False)
    rows = [*good.items(), *((name, file) for name, (file, _) in (BAD | LACKING).items())]
    rows = rows[::2] + rows[1::2]
    write_manifest(folder / "manifest.csv", rows)
    return folder


@pytest.fixture
def small(collection, tmp_path):
    """Three good clips and a bad one, to be changed."""
    names = ["clip 0.mp4", "clip 1.mp4", "clip 2.mp4", "text.mp4"]
    for name in names:
        shutil.copy(collection / name, tmp_path / name)
    write_manifest(tmp_path / "manifest.csv", [(name, name) for name in names])
    return tmp_path


def _pictures(size, frames_per_second, count):
    for number in range(count):
        pixels = np.full((size[1], size[0], 3), (40 * (number // frames_per_second) + 10) % 256, np.uint8)
        pixels[:, : size[0] // 4, 0] = 250  # a red bar at the left tells what is upright
        frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
        frame.pts, frame.time_base = number, Fraction(1, frames_per_second)
        yield frame


def _sounds(kind, tone, rate, channels, count):
    samples = np.zeros((channels, count), np.float32)
    samples[0] = 0.5 * np.sin(2 * np.pi * tone * np.arange(count) / rate)  # a second channel stays silent
    for start in range(0, count, 960):
        block = np.ascontiguousarray(samples[:, start : start + 960])
        if kind == "flt":
            block = np.ascontiguousarray(block.T.reshape(1, -1))
        if kind == "s16":
            block = np.ascontiguousarray((block * 32767).astype(np.int16).T.reshape(1, -1))
        frame = av.AudioFrame.from_ndarray(block, format=kind, layout="mono" if channels == 1 else "stereo")
        frame.sample_rate, frame.pts, frame.time_base = rate, start, Fraction(1, rate)
        yield frame
