"""Random setting of a clip: traits of the event, its position, and disturbances."""

from dataclasses import dataclass

import numpy as np

from aadml.data.samples.events import EVENTS
from aadml.data.samples.scene import COLORS, Scene

NOISES = ("hiss", "rumble", "hum", "chatter")
"""Kinds of background noise."""

PLACES = ("left", "middle", "right")
"""Positions of an event."""


@dataclass(frozen=True)
class Disturbance:
    """A second event behind the first, heard or seen, never both.

    Args:
        label: label of the event.
        scene: traits of the event.
        strength: level relative to the first event in decibel (heard), or size relative to the frame (seen).
    """

    label: str
    scene: Scene
    strength: float


@dataclass(frozen=True)
class Setting:
    """Traits in which clips differ.

    Args:
        label: the event.
        scene: traits of the event.
        place: "left", "middle" or "right".
        offset: offset from the center, right and down, as a share of the frame.
        size: width of the event as a share of the frame.
        noise: kind of the background noise, one of `NOISES`.
        noise_level: level of the noise relative to the event, in decibel.
        loudness: level of the whole clip, in decibel.
        tilt: exponent of the fall of the amplitude with frequency; a negative tilt raises high frequencies.
        clutter: number of objects in the background.
        grain: standard deviation of the camera's noise, in levels of 255.
        light: factor on the picture's brightness.
        heard: another event that is only heard.
        seen: another event that is only seen.
    """

    label: str
    scene: Scene
    place: str
    offset: tuple[float, float]
    size: float
    noise: str
    noise_level: float
    loudness: float
    tilt: float
    clutter: int
    grain: float
    light: float
    heard: Disturbance | None
    seen: Disturbance | None


def draw_setting(label: str, seconds: float, difficulty: float, generator: np.random.Generator) -> Setting:
    """Draw the setting of a clip.

    Args:
        label: a key of `EVENTS`.
        seconds: length of the clip.
        difficulty: 0 (clear, alone, in the middle) to 1 (small, aside, in noise, with other events heard and seen).
        generator: source of the randomness.
    """
    scene = _draw_scene(seconds, generator)
    place = PLACES[int(generator.integers(3))]
    reach = 0.06 + 0.16 * difficulty
    aside = {"left": -reach, "middle": 0.0, "right": reach}[place]
    return Setting(
        label=label,
        scene=scene,
        place=place,
        offset=(aside, float(generator.uniform(-0.12, 0.12)) * difficulty),
        size=float(generator.uniform(0.86 - 0.45 * difficulty, 0.9 - 0.15 * difficulty)),
        noise=NOISES[int(generator.integers(len(NOISES)))],
        noise_level=float(generator.uniform(-30 + 12 * difficulty, -20 + 22 * difficulty)),
        loudness=float(generator.uniform(-16 - 12 * difficulty, -14)),
        tilt=float(generator.uniform(-0.5, 0.5)) * difficulty,
        clutter=int(generator.integers(0, 1 + round(10 * difficulty))),
        grain=float(generator.uniform(0, 18)) * difficulty,
        light=float(generator.uniform(1 - 0.5 * difficulty, 1 + 0.2 * difficulty)),
        heard=_draw_disturbance(label, seconds, difficulty, (-18 + 10 * difficulty, -12 + 14 * difficulty), generator),
        seen=_draw_disturbance(label, seconds, difficulty, (0.2 + 0.1 * difficulty, 0.3 + 0.4 * difficulty), generator),
    )


def _draw_scene(seconds: float, generator: np.random.Generator) -> Scene:
    tempo, pitch = (float(share) for share in generator.random(2))
    return Scene(seconds=seconds, tempo=tempo, pitch=pitch, color=list(COLORS)[int(generator.integers(len(COLORS)))])


def _draw_disturbance(
    label: str, seconds: float, difficulty: float, strengths: tuple[float, float], generator: np.random.Generator
) -> Disturbance | None:
    others = [other for other in EVENTS if other != label]
    drawn = Disturbance(
        label=others[int(generator.integers(len(others)))],
        scene=_draw_scene(seconds, generator),
        strength=float(generator.uniform(*strengths)),
    )
    return drawn if generator.random() < 1.2 * difficulty else None
