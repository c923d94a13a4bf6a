"""What a sounding event is given and what it returns."""

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
        seconds: length of the clip.
        tempo: 0 (the event's slowest) to 1 (its fastest).
        pitch: 0 (the event's lowest) to 1 (its highest).
        color: name of its color, a key of `COLORS`.
    """

    seconds: float
    tempo: float
    pitch: float
    color: str

    @property
    def paint(self) -> Color:
        """Return its color."""
        return COLORS[self.color]

    def between(self, slow: float, fast: float) -> float:
        """Return the value that its tempo means on a scale from `slow` to `fast`, in equal ratios."""
        return float(slow * (fast / slow) ** self.tempo)

    def tone(self, low: float, high: float) -> float:
        """Return the frequency that its pitch means on a scale from `low` to `high` Hz, in equal ratios."""
        return float(low * (high / low) ** self.pitch)


@dataclass(frozen=True)
class Event:
    """An event's sound (samples,) and what draws it: `draw(picture, time in seconds)`."""

    sound: Signal
    draw: Callable[[Picture, float], None]


def beats(generator: np.random.Generator, scene: Scene, period: float, *, jitter: float = 0.0) -> list[float]:
    """Return the times in seconds of what happens about every `period` seconds, beginning before the clip does.

    Args:
        generator: where phase and jitter come from.
        scene: the event's traits.
        period: seconds from one beat to the next.
        jitter: how far a beat may stray, as a share of the period.
    """
    start = -period * generator.uniform(0.05, 0.95)
    count = int((scene.seconds - start) / period) + 2
    strays = generator.uniform(-jitter, jitter, count) * period
    return [float(start + number * period + stray) for number, stray in enumerate(strays)]


def since(time: float, starts: list[float]) -> float:
    """Return how many seconds ago the last of `starts` was; a large number when none was yet."""
    return min((time - start for start in starts if start <= time), default=1e3)
