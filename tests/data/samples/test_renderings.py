"""Every event, and a clip of each, looks and sounds as it did when its rendering was kept.

Sample clips of later versions stay comparable.

`python tests/data/samples/test_renderings.py` keeps the renderings of today, after a change that is meant.
"""

from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from aadml.data.samples.clip import EDITION, SIZE, render_clip
from aadml.data.samples.events import EVENTS
from aadml.data.samples.picture import Picture
from aadml.data.samples.scene import Scene
from aadml.data.samples.setting import NOISES, PLACES

KEPT = Path(__file__).with_name("renderings.npz")
SCENES = {
    "slow": Scene(seconds=2.0, tempo=0.2, pitch=0.3, color="red"),
    "fast": Scene(seconds=2.0, tempo=1.0, pitch=0.9, color="blue"),
}
CLIP = "clip"
FRAMES, SIDE, WINDOWS, BANDS = 36, 8, 16, 8


class Recorder:
    """A picture that records the numbers of every call, also of the pictures that lean from it."""

    def __init__(self, numbers):
        self.numbers = numbers

    def leaning(self, *numbers):
        self.numbers.extend(numbers)
        return self

    def __getattr__(self, name):
        def draw(*numbers):
            self.numbers.append(sum(map(ord, name)))
            self.numbers.extend(np.concatenate([np.ravel(number) for number in numbers]).tolist())

        return draw


def summed(values):
    """Weighted sum of values, which changes with each of them and with their order."""
    values = np.asarray(values, dtype=np.float64)
    return float(values @ (1.5 + np.cos(np.arange(len(values)) % 9973)))


def rendered(name, scene):
    """Pictures, sound and exact sums of an event, or of a whole clip of 0.5 s."""
    if scene == CLIP:
        clip = render_clip(name, list(EVENTS).index(name), seconds=0.5, seed=6)
        return *described(clip.pictures, clip.sound), np.asarray([100 * clip.pictures.mean(), summed(clip.sound)])
    event, drawn = EVENTS[name](SCENES[scene], np.random.default_rng(3)), []
    pictures = np.full((FRAMES, SIZE, SIZE, 3), 128, dtype=np.uint8)
    for number, image in enumerate(pictures):
        event.draw(Picture(image, (SIZE / 2, SIZE / 2), SIZE / 2), 2.0 * number / FRAMES)
        event.draw(Recorder(drawn), 2.0 * number / FRAMES)
    return *described(pictures, event.sound), np.asarray([summed(drawn), summed(event.sound)])


def described(pictures, sound):
    """Mean colors of 8 by 8 blocks of the pictures, and decibels of 8 bands of 16 windows of the sound."""
    blocks = pictures.reshape(len(pictures), SIDE, SIZE // SIDE, SIDE, SIZE // SIDE, 3).mean((2, 4))
    power = np.abs(np.fft.rfft(sound.reshape(WINDOWS, -1))[:, 1:]) ** 2
    edges = np.geomspace(2, power.shape[1], BANDS + 1).astype(int)
    return blocks, 10 * np.log10(1e-3 + np.add.reduceat(power, edges[:-1], axis=1))


@pytest.mark.parametrize("scene", [*SCENES, CLIP])
@pytest.mark.parametrize("name", EVENTS)
def test_an_event_and_a_clip_are_rendered_as_they_were_kept(name, scene):
    pictures, decibel, sums = rendered(name, scene)
    with np.load(KEPT) as kept:
        assert np.abs(pictures - kept[f"{name} {scene} pictures"]).max() < 1.5
        assert np.abs(decibel - kept[f"{name} {scene} decibel"]).max() < 0.1
        exact = (1.0 if scene == CLIP else 1e-4, 1e-4)  # edges of drawn shapes may differ between versions of OpenCV
        assert (np.abs(sums - kept[f"{name} {scene} sums"]) < exact).all()


def test_other_renderings_raise_the_edition():
    assert (EDITION, sha256(KEPT.read_bytes()).hexdigest()[:8]) == (1, "6f42e3a7")


def test_the_kept_clips_have_every_place_and_noise_with_and_without_disturbances():
    settings = [render_clip(name, n, seconds=0.1, seed=6).setting for n, name in enumerate(EVENTS)]
    assert {setting.place for setting in settings} == {*PLACES}
    assert {setting.noise for setting in settings} == {*NOISES}
    for part in ("heard", "seen"):
        assert {getattr(setting, part) is None for setting in settings} == {True, False}


if __name__ == "__main__":
    every = {f"{name} {scene}": rendered(name, scene) for name in EVENTS for scene in (*SCENES, CLIP)}
    pictures = {f"{key} pictures": np.rint(values).astype(np.uint8) for key, (values, _, _) in every.items()}
    decibel = {f"{key} decibel": values.astype(np.float32) for key, (_, values, _) in every.items()}
    np.savez_compressed(KEPT, **pictures, **decibel, **{f"{key} sums": sums for key, (*_, sums) in every.items()})
