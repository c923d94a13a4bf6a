"""Every event looks and sounds as it did when its rendering was kept: sample clips of later versions stay comparable.

`python tests/data/samples/test_renderings.py` keeps the renderings of today, after a change that is meant.
"""

from pathlib import Path

import numpy as np
import pytest

from aadml.data.samples.clip import SIZE
from aadml.data.samples.events import EVENTS
from aadml.data.samples.picture import Picture
from aadml.data.samples.scene import Scene

KEPT = Path(__file__).with_name("renderings.npz")
SCENES = {
    "slow": Scene(seconds=2.0, tempo=0.2, pitch=0.3, color="red"),
    "fast": Scene(seconds=2.0, tempo=1.0, pitch=0.9, color="blue"),
}
FRAMES, SIDE, WINDOWS, BANDS = 36, 8, 16, 8


def rendered(name, scene):
    """Mean colors of 8 by 8 blocks of 36 pictures, and decibels of 8 bands of 16 windows of the sound."""
    event = EVENTS[name](SCENES[scene], np.random.default_rng(3))
    pictures = np.empty((FRAMES, SIDE, SIDE, 3))
    for number in range(FRAMES):
        image = np.full((SIZE, SIZE, 3), 128, dtype=np.uint8)
        event.draw(Picture(image, (SIZE / 2, SIZE / 2), SIZE / 2), 2.0 * number / FRAMES)
        pictures[number] = image.reshape(SIDE, SIZE // SIDE, SIDE, SIZE // SIDE, 3).mean((1, 3))
    power = np.abs(np.fft.rfft(event.sound.reshape(WINDOWS, -1))[:, 1:]) ** 2
    edges = np.geomspace(2, power.shape[1], BANDS + 1).astype(int)
    decibel = 10 * np.log10(1e-3 + np.add.reduceat(power, edges[:-1], axis=1))
    return pictures, decibel


@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize("name", EVENTS)
def test_an_event_is_rendered_as_it_was_kept(name, scene):
    pictures, decibel = rendered(name, scene)
    with np.load(KEPT) as kept:
        assert np.abs(pictures - kept[f"{name} {scene} pictures"]).max() < 1.5
        assert np.abs(decibel - kept[f"{name} {scene} decibel"]).max() < 0.1


if __name__ == "__main__":
    every = {f"{name} {scene}": rendered(name, scene) for name in EVENTS for scene in SCENES}
    pictures = {f"{key} pictures": np.rint(values).astype(np.uint8) for key, (values, _) in every.items()}
    np.savez_compressed(
        KEPT, **pictures, **{f"{key} decibel": values.astype(np.float32) for key, (_, values) in every.items()}
    )
