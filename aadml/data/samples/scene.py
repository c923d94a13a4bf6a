"""Traits of an event (`Scene`), its sound and picture (`Event`), and the times of its beats."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from aadml.data.samples.picture import Color, Picture
from aadml.data.samples.sound import Signal

COLORS: dict[str, Color] = {
    "red": (52, 48, 214),
    "orange": (40, 130, 240),
    "yellow": (60, 205, 245),
    "green": (70, 170, 60),
    "blue": (205, 110, 40),
    "purple": (170, 60, 140),
    "white": (238, 238, 236),
    "gray": (140, 140, 140),
}


@dataclass(frozen=True)
class Scene:
    """The traits of one event, the same for its sound and its picture.

    Args:
        seconds: length of the clip, in seconds.
        tempo: 0 (slowest) to 1 (fastest).
        pitch: 0 (lowest) to 1 (highest).
        color: name of the color, a key of `COLORS`.
    """

    seconds: float
    tempo: float
    pitch: float
    color: str

    @property
    def paint(self) -> Color:
        """Color, blue-green-red."""
        return COLORS[self.color]

    def between(self, slow: float, fast: float) -> float:
        """Return the value of the tempo on a logarithmic scale from `slow` to `fast`."""
        return float(slow * (fast / slow) ** self.tempo)

    def tone(self, low: float, high: float) -> float:
        """Return the frequency of the pitch on a logarithmic scale from `low` to `high` Hz."""
        return float(low * (high / low) ** self.pitch)


@dataclass(frozen=True)
class Event:
    """Sound (samples,) of an event, and the function that draws the event: `draw(picture, time in seconds)`."""

    sound: Signal
    draw: Callable[[Picture, float], None]


def beats(generator: np.random.Generator, scene: Scene, period: float, *, jitter: float = 0.0) -> list[float]:
    """Return times in seconds, about `period` apart; without jitter, the first time is before the start of the clip.

    Args:
        generator: source of phase and jitter.
        scene: the event's traits.
        period: seconds from one beat to the next.
        jitter: largest deviation of a beat, as a share of the period.
    """
    start = -period * generator.uniform(0.05, 0.95)
    count = int((scene.seconds - start) / period) + 2
    strays = generator.uniform(-jitter, jitter, count) * period
    return [float(start + number * period + stray) for number, stray in enumerate(strays)]


def since(time: float, starts: list[float]) -> float:
    """Return `time` minus the latest start that is not later, in seconds; 1000 without such a start."""
    return min((time - start for start in starts if start <= time), default=1e3)
