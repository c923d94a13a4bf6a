from itertools import pairwise

import numpy as np
import pytest

from aadml.data.samples.clip import SIZE
from aadml.data.samples.events import EVENTS
from aadml.data.samples.picture import Picture
from aadml.data.samples.scene import Scene
from aadml.data.samples.sound import RATE

SCENE = Scene(seconds=2.0, tempo=0.4, pitch=0.5, color="red")


def event(name, seed=0, scene=SCENE):
    return EVENTS[name](scene, np.random.default_rng(seed))


def drawn(shown, time):
    image = np.full((SIZE, SIZE, 3), 128, dtype=np.uint8)
    shown.draw(Picture(image, (SIZE / 2, SIZE / 2), SIZE / 2), time)
    return image.astype(int)


def energy(sound, time, window=0.02):
    part = sound[round(time * RATE) : round((time + window) * RATE)]
    return float((part**2).mean())


@pytest.mark.parametrize("name", EVENTS)
def test_every_event_is_heard_and_moves(name):
    shown = event(name)
    assert shown.sound.shape == (2 * RATE,)
    assert np.isfinite(shown.sound).all()
    assert np.abs(shown.sound).max() > 0.1
    frames = [drawn(shown, number / 12) for number in range(24)]
    assert any((frame != frames[0]).any() for frame in frames)
    assert (frames[0] != 128).any(axis=2).mean() > 0.03


@pytest.mark.parametrize("name", EVENTS)
@pytest.mark.parametrize("share", [0.0, 1.0])
def test_every_event_can_be_as_slow_low_fast_and_high_as_it_gets(name, share):
    shown = event(name, scene=Scene(seconds=0.5, tempo=share, pitch=share, color="gray"))
    assert np.isfinite(shown.sound).all()
    drawn(shown, 0.0), drawn(shown, 0.49)


@pytest.mark.parametrize("name", EVENTS)
def test_the_same_generator_gives_the_same_event_and_another_one_another(name):
    one, same, other = event(name), event(name), event(name, seed=1)
    assert np.array_equal(one.sound, same.sound)
    assert np.array_equal(drawn(one, 0.7), drawn(same, 0.7))
    assert not np.array_equal(one.sound, other.sound)


def test_the_ball_is_on_the_floor_when_it_thumps():
    shown = event("bouncing ball")
    quiet = [
        t
        for t in np.arange(0.05, 1.95, 0.005)
        if energy(shown.sound, t, 0.01) > 30 * energy(shown.sound, t - 0.02, 0.01)
    ]
    hits = [t for number, t in enumerate(quiet) if number == 0 or t - quiet[number - 1] > 0.1]
    assert len(hits) >= 3
    lowest = [bottom_of_red(drawn(shown, t + 0.005)) for t in hits]
    between = [bottom_of_red(drawn(shown, (one + two) / 2)) for one, two in pairwise(hits)]
    assert min(lowest) > max(between) + 10


def bottom_of_red(image):
    red = (image[..., 2] > 150) & (image[..., 0] < 120)
    return int(np.flatnonzero(red.any(axis=1)).max())


def test_a_key_is_lit_while_its_tones_sound():
    shown = event("telephone keypad")
    agree = []
    for time in np.arange(0.02, 1.95, 0.01):
        lit = ((drawn(shown, time)[..., 1] > 240) & (drawn(shown, time)[..., 0] < 160)).any()
        agree.append(lit == (energy(shown.sound, time, 0.002) > 1e-3))
    assert np.mean(agree) > 0.95


def test_the_siren_is_bright_when_its_tone_is_high():
    shown = event("siren", seed=3)
    times = np.arange(0.05, 1.9, 0.05)
    light = [drawn(shown, time)[int(0.44 * SIZE), SIZE // 2, 2] for time in times]
    pitch = [np.abs(np.diff(np.sign(shown.sound[round(t * RATE) : round((t + 0.03) * RATE)]))).sum() for t in times]
    assert np.corrcoef(light, pitch)[0, 1] > 0.6


def test_the_wheel_turns_as_fast_as_the_engine_fires():
    slow = event("engine", scene=Scene(2.0, tempo=0.0, pitch=0.5, color="blue"))
    fast = event("engine", scene=Scene(2.0, tempo=1.0, pitch=0.5, color="blue"))
    changed = [(np.abs(drawn(shown, 0.05) - drawn(shown, 0.0)) > 30).mean() for shown in (slow, fast)]
    assert changed[1] > changed[0]
