"""A metronome: a tick whenever the arm turns back."""

import numpy as np

from aadml.data.samples.picture import Picture, darker, lighter
from aadml.data.samples.scene import Event, Scene
from aadml.data.samples.sound import click, lay, strike, time_axis


def metronome(scene: Scene, generator: np.random.Generator) -> Event:
    """Return the event of a metronome with 100 to 260 ticks a minute; every 2nd, 3rd or 4th tick is stressed."""
    period = 60 / scene.between(100, 260)
    phase = period * generator.uniform(0.05, 0.95)
    swing, bob = generator.uniform(0.4, 0.65), generator.uniform(0.5, 0.95)
    frequency, stress = scene.tone(900, 2600), int(generator.integers(2, 5))
    length = generator.uniform(0.04, 0.08)
    ticks = []
    for number in range(-1, int(scene.seconds / period) + 1):
        tone = frequency * (1.25 if number % stress == 0 else 1.0)
        tick = 0.8 * strike(tone, length, decay=8) + 0.4 * click(generator, length, tone, 7500)
        ticks.append((phase + number * period, tick))

    def draw(picture: Picture, time: float) -> None:
        angle = swing * float(np.cos(np.pi * (time - phase) / period))
        picture.shape([(-0.28, -0.85), (0.28, -0.85), (0.62, 0.9), (-0.62, 0.9)], darker(scene.paint))
        picture.shape([(-0.22, -0.75), (0.22, -0.75), (0.5, 0.55), (-0.5, 0.55)], scene.paint)
        for row in range(6):
            picture.line(-0.08, -0.55 + 0.16 * row, 0.08, -0.55 + 0.16 * row, darker(scene.paint, 0.6), 0.03)
        arm = picture.leaning(angle, 0.0, 0.5)
        arm.line(0, 0, 0, -1.35, (225, 230, 235), 0.06)
        arm.shape([(-0.14, -bob - 0.1), (0.14, -bob - 0.1), (0.09, -bob + 0.12), (-0.09, -bob + 0.12)], (60, 60, 70))
        picture.box(-0.62, 0.55, 0.62, 0.9, lighter(darker(scene.paint), 0.1))

    return Event(lay(np.zeros_like(time_axis(scene.seconds)), ticks), draw)
