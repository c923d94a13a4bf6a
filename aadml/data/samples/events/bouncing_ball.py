"""A ball that bounces on the floor: a thump at every contact."""

import numpy as np

from aadml.data.samples.picture import Picture, darker, lighter
from aadml.data.samples.scene import Event, Scene
from aadml.data.samples.sound import Signal, click, lay, strike, time_axis


def bouncing_ball(scene: Scene, generator: np.random.Generator) -> Event:
    """Return the event of a ball that hits the floor 1.5 to 4 times a second."""
    period = 1 / scene.between(1.5, 4.0)
    phase = period * generator.uniform(0.05, 0.95)
    height = 0.55 + 0.75 * (1 - scene.tempo) * generator.uniform(0.7, 1.0)
    drift, radius = generator.uniform(-0.5, 0.5), generator.uniform(0.26, 0.36)
    frequency = scene.tone(70, 240)
    hits = [phase + number * period for number in range(-1, int(scene.seconds / period) + 1)]
    thumps = [
        (hit, generator.uniform(0.7, 1.0) * strike(frequency, 0.22, drop=0.45) + _slap(generator, frequency))
        for hit in hits
    ]

    def draw(picture: Picture, time: float) -> None:
        share = ((time - phase) / period) % 1.0
        lift = height * (1 - (2 * share - 1) ** 2)
        squash = max(0.0, 1 - lift / 0.12) * 0.35
        x = drift * float(np.sin(1.3 * time + phase))
        y = 0.8 - lift - radius * (1 - squash)
        picture.oval(x, 0.84, radius * (1.2 - 0.4 * lift), 0.06, (45, 45, 45))
        picture.oval(x, y, radius * (1 + squash), radius * (1 - squash), darker(scene.paint))
        picture.oval(x - 0.02, y - 0.02, radius * (0.93 + squash), radius * (0.93 - squash), scene.paint)
        picture.disc(x - 0.35 * radius, y - 0.4 * radius, 0.2 * radius, lighter(scene.paint, 0.7))

    return Event(lay(np.zeros_like(time_axis(scene.seconds)), thumps), draw)


def _slap(generator: np.random.Generator, frequency: float) -> Signal:
    slap = np.zeros_like(time_axis(0.22))
    return lay(slap, [(0.0, 0.35 * click(generator, 0.03, 4 * frequency, 16 * frequency))])
