"""A telephone keypad: each key lights up while its two tones sound."""

import numpy as np

from aadml.data.samples.picture import Picture, darker, lighter
from aadml.data.samples.scene import Event, Scene
from aadml.data.samples.sound import RATE, Signal, lay, oscillate, time_axis

_ROWS = (697.0, 770.0, 852.0, 941.0)
_COLUMNS = (1209.0, 1336.0, 1477.0)


def telephone_keypad(scene: Scene, generator: np.random.Generator) -> Event:
    """Return the event of a keypad: 2 to 7 touch-tone signals a second (ITU-T Q.23), detuned by up to 18 %."""
    period, share = 1 / scene.between(2, 7), generator.uniform(0.45, 0.8)
    start, detuned = -period * generator.uniform(0.1, 0.9), scene.tone(0.85, 1.18)
    presses = [(start + number * period, *_key(generator)) for number in range(int(scene.seconds / period) + 2)]
    tones = [(time, _tone(row, column, share * period, detuned)) for time, row, column in presses]

    def draw(picture: Picture, time: float) -> None:
        lit = [(row, column) for begin, row, column in presses if 0 <= time - begin < max(share * period, 1 / 12)]
        picture.box(-0.66, -0.95, 0.66, 0.95, darker(scene.paint, 0.6))
        picture.box(-0.6, -0.89, 0.6, 0.89, darker(scene.paint, 0.25))
        for row in range(4):
            for column in range(3):
                x, y = 0.37 * (column - 1), 0.42 * (row - 1.5)
                on = (row, column) in lit
                picture.box(
                    x - 0.15, y - 0.16, x + 0.15, y + 0.16, (110, 250, 255) if on else lighter(scene.paint, 0.6)
                )
                picture.box(x - 0.05, y - 0.06, x + 0.05, y + 0.06, (40, 40, 40))
                if on:
                    picture.glow(x, y, 0.6, (120, 255, 255), 0.7)

    return Event(lay(np.zeros_like(time_axis(scene.seconds)), tones), draw)


def _key(generator: np.random.Generator) -> tuple[int, int]:
    return int(generator.integers(4)), int(generator.integers(3))


def _tone(row: int, column: int, seconds: float, detuned: float) -> Signal:
    pair = oscillate(_ROWS[row] * detuned, seconds) + oscillate(_COLUMNS[column] * detuned, seconds)
    count = np.arange(pair.size)
    edge = np.minimum(np.minimum(count, count[::-1]) / (0.004 * RATE), 1.0)
    return np.asarray(pair * edge)
