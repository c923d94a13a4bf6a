"""An engine that turns a wheel: the firing rate rises with the speed of the wheel."""

import numpy as np

from aadml.data.samples.picture import Picture, darker, lighter
from aadml.data.samples.scene import Event, Scene
from aadml.data.samples.sound import RATE, hiss, time_axis


def engine(scene: Scene, generator: np.random.Generator) -> Event:
    """Return the event of an engine that fires at 22 to 75 Hz and turns a wheel 0.6 to 2.2 times a second.

    Both rates are those at the nominal speed. The speed varies periodically by 5 to 35 percent.
    """
    turns, firing = scene.between(0.6, 2.2), scene.tone(22, 75)
    rev, rate, phase = generator.uniform(0.05, 0.35), generator.uniform(0.3, 1.2), generator.uniform(0, 2 * np.pi)
    spokes, rough = int(generator.integers(3, 7)), generator.uniform(0.1, 0.5)
    time = time_axis(scene.seconds)
    speed = 1 + rev * np.sin(2 * np.pi * rate * time + phase)
    turned = np.cumsum(speed) / RATE  # seconds at the mean speed
    cycle = 2 * np.pi * firing * turned
    tones = sum(np.sin(part * cycle + 0.7 * part**2) / part**0.7 for part in range(1, 16))
    breath = (0.5 + 0.5 * np.cos(cycle)) ** 3 * hiss(generator, scene.seconds, 150, 3500, tilt=0.5)

    def draw(picture: Picture, moment: float) -> None:
        angle = 2 * np.pi * turns * float(turned[min(int(moment * RATE), turned.size - 1)])
        shake = 0.012 * float(np.sin(40 * moment))
        picture.box(-0.95, 0.55 + shake, 0.95, 0.85, (75, 75, 75))
        picture.box(0.25, -0.45 + shake, 0.95, 0.6, darker(scene.paint))
        picture.box(0.32, -0.38 + shake, 0.88, 0.1, scene.paint)
        for rib in range(4):
            picture.line(0.32, 0.2 + 0.09 * rib + shake, 0.88, 0.2 + 0.09 * rib + shake, (60, 60, 60), 0.03)
        wheel = picture.leaning(angle, -0.3, 0.1)
        wheel.disc(0, 0, 0.62, (50, 50, 50))
        wheel.disc(0, 0, 0.5, lighter(scene.paint, 0.5))
        for spoke in range(spokes):
            wheel.leaning(2 * np.pi * spoke / spokes).line(0, 0, 0, -0.5, darker(scene.paint, 0.5), 0.1)
        wheel.disc(0, 0, 0.13, scene.paint)
        wheel.disc(0, -0.56, 0.05, (230, 230, 230))

    return Event(np.asarray(tones / 3 + rough * breath, dtype=np.float64), draw)
