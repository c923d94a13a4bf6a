"""Typing: keys go down and light up, and the text on the screen grows."""

import numpy as np

from aadml.data.samples.picture import Picture, darker, lighter
from aadml.data.samples.scene import Event, Scene, beats
from aadml.data.samples.sound import Signal, click, lay, strike, time_axis

_KEYS = tuple((row, column) for row in range(3) for column in range(8))


def typing(scene: Scene, generator: np.random.Generator) -> Event:
    """Return the event of a keyboard with 4 to 12 uneven strokes a second."""
    strokes = beats(generator, scene, 1 / scene.between(4, 12), jitter=0.45)
    keys = [_KEYS[int(number)] for number in generator.integers(len(_KEYS), size=len(strokes))]
    low, body = scene.tone(900, 2600), generator.uniform(0.1, 0.5)
    pieces = [(stroke, _stroke(generator, low * generator.uniform(0.85, 1.2), body)) for stroke in strokes]
    written = int(generator.integers(0, 20))
    words = generator.random(400) < 0.8

    def draw(picture: Picture, time: float) -> None:
        picture.box(-0.75, -0.95, 0.75, 0.05, (60, 60, 60))
        picture.box(-0.68, -0.88, 0.68, -0.02, (225, 225, 215))
        for number in range(min(written + sum(stroke <= time for stroke in strokes), 5 * 14)):
            if words[number]:
                x, y = -0.6 + 0.088 * (number % 14), -0.78 + 0.16 * (number // 14)
                picture.line(x, y, x + 0.06, y, (70, 60, 60), 0.06)
        picture.shape([(-0.9, 0.15), (0.9, 0.15), (1.0, 0.92), (-1.0, 0.92)], darker(scene.paint))
        down = [key for stroke, key in zip(strokes, keys, strict=True) if 0 <= time - stroke < 0.1]
        for row, column in _KEYS:
            x, y = 0.215 * (column - 3.5) + 0.03 * row - 0.03, 0.32 + 0.21 * row
            paint = (110, 250, 255) if (row, column) in down else lighter(scene.paint, 0.55)
            drop = 0.03 if (row, column) in down else 0.0
            picture.box(x - 0.085, y - 0.08 + drop, x + 0.085, y + 0.08 + drop, paint)

    return Event(lay(np.zeros_like(time_axis(scene.seconds)), pieces), draw)


def _stroke(generator: np.random.Generator, low: float, body: float) -> Signal:
    piece = generator.uniform(0.6, 1.0) * click(generator, 0.05, low, min(3 * low, 7800))
    return piece + body * strike(0.15 * low, 0.05, decay=6)
