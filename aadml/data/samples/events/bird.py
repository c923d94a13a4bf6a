"""A bird on a branch: its beak opens with every chirp."""

import numpy as np

from aadml.data.samples.picture import Picture, darker, lighter
from aadml.data.samples.scene import Event, Scene, beats
from aadml.data.samples.sound import Signal, lay, oscillate, time_axis


def bird(scene: Scene, generator: np.random.Generator) -> Event:
    """Return the event of a bird that sings 2 to 7 sweeps a second, starting at 1.4 to 4.7 kHz."""
    period = 1 / scene.between(2, 7)
    starts = beats(generator, scene, period, jitter=0.15)
    length, base = period * generator.uniform(0.35, 0.7), scene.tone(1600, 4200)
    bend, wave = generator.uniform(-0.5, 0.6), generator.uniform(0, 0.12)
    chirps = [(start, _chirp(base * generator.uniform(0.9, 1.12), bend, wave, length)) for start in starts]
    facing = -1.0 if generator.random() < 0.5 else 1.0

    def draw(picture: Picture, time: float) -> None:
        age = min((time - start for start in starts if time >= start), default=1.0)
        gape = float(np.sin(np.pi * min(age / max(length, 1 / 8), 1.0)))
        bob = -0.05 * gape
        picture.line(-0.95, 0.72, 0.95, 0.62, (45, 70, 100), 0.1)
        for leg in (-0.08, 0.12):
            picture.line(leg, 0.4, leg, 0.68, (40, 90, 140), 0.04)
        picture.shape([(-0.4 * facing, 0.1), (-1.0 * facing, 0.42), (-0.9 * facing, 0.15)], darker(scene.paint))
        picture.oval(0.0, 0.1, 0.52, 0.4, scene.paint)
        picture.oval(0.1 * facing, 0.22, 0.36, 0.24, lighter(scene.paint, 0.5))
        picture.oval(-0.15 * facing, 0.08, 0.3, 0.2 + 0.06 * gape, darker(scene.paint, 0.3))
        head = 0.42 * facing
        picture.disc(head, -0.32 + bob, 0.28, scene.paint)
        picture.disc(head + 0.08 * facing, -0.4 + bob, 0.06, (25, 25, 25))
        root, tip = head + 0.24 * facing, head + 0.56 * facing
        picture.shape([(root, -0.4 + bob), (tip, -0.34 + bob - 0.2 * gape), (root, -0.28 + bob)], (30, 160, 240))
        picture.shape([(root, -0.32 + bob), (tip, -0.28 + bob + 0.2 * gape), (root, -0.2 + bob)], (20, 120, 210))

    return Event(lay(np.zeros_like(time_axis(scene.seconds)), chirps), draw)


def _chirp(base: float, bend: float, wave: float, seconds: float) -> Signal:
    share = time_axis(seconds) / seconds
    frequency = base * (1 + bend * share + wave * np.sin(2 * np.pi * 28 * share * seconds))
    return oscillate(np.minimum(frequency, 7200.0), seconds) * np.sin(np.pi * share) ** 1.5
