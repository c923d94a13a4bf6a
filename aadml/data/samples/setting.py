"""Random setting of a clip: traits of the event, its position, and disturbances."""

from dataclasses import dataclass

import numpy as np

from aadml.data.samples.events import EVENTS
from aadml.data.samples.scene import COLORS, Scene

NOISES = ("hiss", "rumble", "hum", "chatter")
"""Kinds of background noise."""

PLACES = ("left", "middle", "right")
"""Positions of an event."""

_ASIDE = {"left": -0.14, "middle": 0.0, "right": 0.14}  # offset to the right, as a share of the frame


@dataclass(frozen=True)
class Disturbance:
    """A second event in the background of a clip, either only heard or only seen.

    Args:
        label: label of the event.
        scene: traits of the event.
        strength: for a heard event, the level in dB relative to the first event; for a seen event, the width as a
            share of the frame.
    """

    label: str
    scene: Scene
    strength: float


@dataclass(frozen=True)
class ClipTraits:
    """Traits of a sample clip.

    Args:
        label: label of the event.
        scene: traits of the event.
        place: "left", "middle" or "right".
        offset: offset from the center, right and down, as a share of the frame.
        size: width of the event as a share of the frame.
        noise: kind of the background noise, one of `NOISES`.
        noise_level: level of the noise relative to the event, in dB.
        loudness: level of the whole clip, in dB relative to an amplitude of 1.
        tilt: exponent of the fall of the amplitude with frequency; a negative tilt raises high frequencies.
        clutter: number of objects in the background.
        grain: standard deviation of the camera's noise, in gray levels (0 to 255).
        light: factor by which the picture's brightness is multiplied.
        heard: second event, only heard; None without such an event.
        seen: second event, only seen; None without such an event.
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


def draw_setting(label: str, seconds: float, generator: np.random.Generator) -> ClipTraits:
    """Draw the random traits of a clip of one event.

    Args:
        label: a key of `EVENTS`.
        seconds: length of the clip, in seconds.
        generator: source of the randomness.
    """
    scene = _draw_scene(seconds, generator)
    place = PLACES[int(generator.integers(3))]
    return ClipTraits(
        label=label,
        scene=scene,
        place=place,
        offset=(_ASIDE[place], float(generator.uniform(-0.06, 0.06))),
        size=float(generator.uniform(0.635, 0.9 - 0.075)),
        noise=NOISES[int(generator.integers(len(NOISES)))],
        noise_level=float(generator.uniform(-24, -9)),
        loudness=float(generator.uniform(-22, -14)),
        tilt=float(generator.uniform(-0.25, 0.25)),
        clutter=int(generator.integers(0, 6)),
        grain=float(generator.uniform(0, 9)),
        light=float(generator.uniform(0.75, 1.1)),
        heard=_draw_disturbance(label, seconds, (-13, -5), generator),
        seen=_draw_disturbance(label, seconds, (0.25, 0.5), generator),
    )


def _draw_scene(seconds: float, generator: np.random.Generator) -> Scene:
    tempo, pitch = (float(share) for share in generator.random(2))
    return Scene(seconds=seconds, tempo=tempo, pitch=pitch, color=list(COLORS)[int(generator.integers(len(COLORS)))])


def _draw_disturbance(
    label: str, seconds: float, strengths: tuple[float, float], generator: np.random.Generator
) -> Disturbance | None:
    others = [other for other in EVENTS if other != label]
    drawn = Disturbance(
        label=others[int(generator.integers(len(others)))],
        scene=_draw_scene(seconds, generator),
        strength=float(generator.uniform(*strengths)),
    )
    return drawn if generator.random() < 0.6 else None
