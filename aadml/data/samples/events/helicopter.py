"""A helicopter: the blades chop the air as they pass."""

import numpy as np

from aadml.data.samples.picture import Picture, darker, lighter
from aadml.data.samples.scene import Event, Scene
from aadml.data.samples.sound import hiss, oscillate, time_axis


def helicopter(scene: Scene, generator: np.random.Generator) -> Event:
    """Return the event of a helicopter whose blades pass 6 to 18 times a second."""
    chop, phase = scene.between(6, 18), generator.uniform(0, 1)
    sharp, top = generator.uniform(2, 8), scene.tone(500, 2200)
    time = time_axis(scene.seconds)
    beat = (0.5 + 0.5 * np.cos(2 * np.pi * (chop * time + phase))) ** sharp
    air = hiss(generator, scene.seconds, 50, top, tilt=0.6)
    whine = generator.uniform(0.02, 0.15) * oscillate(scene.tone(500, 1500), scene.seconds)
    sound = (0.2 + beat) * air + 0.6 * beat * oscillate(scene.tone(50, 110), scene.seconds) + whine
    rate, facing = generator.uniform(0.4, 0.9), (-1.0 if generator.random() < 0.5 else 1.0)

    def draw(picture: Picture, moment: float) -> None:
        lift = 0.06 * float(np.sin(2 * np.pi * rate * moment))
        body = picture.leaning(0.1 * facing * float(np.sin(rate * moment)), 0.0, lift)
        body.shape(
            [(-0.2 * facing, -0.08), (-0.98 * facing, -0.12), (-0.98 * facing, 0.0), (-0.2 * facing, 0.2)],
            darker(scene.paint),
        )
        body.shape([(-0.86 * facing, -0.08), (-1.0 * facing, -0.4), (-0.78 * facing, -0.08)], darker(scene.paint))
        body.oval(0.22 * facing, 0.08, 0.52, 0.34, scene.paint)
        body.oval(0.42 * facing, 0.0, 0.24, 0.2, (225, 200, 160))
        for side in (-0.05, 0.45):
            body.line(side * facing, 0.38, side * facing, 0.58, (60, 60, 60), 0.05)
        body.line(-0.25 * facing, 0.6, 0.75 * facing, 0.6, (60, 60, 60), 0.07)
        body.line(0.15 * facing, -0.25, 0.15 * facing, -0.42, (60, 60, 60), 0.08)
        angle = np.pi * (chop * moment + phase)  # two blades: half a turn from one chop to the next
        reach = 0.95 * float(np.cos(angle))
        body.line(0.15 * facing - reach, -0.44, 0.15 * facing + reach, -0.44, lighter((60, 60, 60), 0.2), 0.07)
        body.oval(0.15 * facing, -0.44, 0.95, 0.03, (150, 150, 150))
        tail = body.leaning(3.1 * angle, -0.98 * facing, -0.2)
        tail.line(0, -0.2, 0, 0.2, (70, 70, 70), 0.06)

    return Event(np.asarray(sound), draw)
