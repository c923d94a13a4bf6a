"""Rain on an umbrella: a hiss, and a patter where the big drops hit."""

import numpy as np

from aadml.data.samples.picture import Picture, darker, lighter
from aadml.data.samples.scene import Event, Scene
from aadml.data.samples.sound import click, hiss, lay


def rain(scene: Scene, generator: np.random.Generator) -> Event:
    """Return the event of rain, with 8 to 40 big drops a second over a hiss."""
    rate, low = scene.between(8, 40), scene.tone(400, 2000)
    hits = np.sort(generator.uniform(0, scene.seconds, int(rate * scene.seconds)))
    places, louds = generator.uniform(-0.85, 0.85, hits.size), generator.uniform(0.4, 1.6, hits.size)
    patter = [
        (float(hit), float(loud) * click(generator, 0.03, low, min(4 * low, 7800)))
        for hit, loud in zip(hits, louds, strict=True)
    ]
    sound = lay(0.25 * hiss(generator, scene.seconds, low, 7800, tilt=generator.uniform(0.1, 0.5)), patter)
    streaks = generator.uniform(-1, 1, (int(18 + 40 * scene.tempo), 2))
    slant = generator.uniform(-0.25, 0.25)
    drop = (235, 215, 190)

    def draw(picture: Picture, time: float) -> None:
        for x, start in streaks:
            y = (start + 1 + 3.1 * time) % 2.2 - 1.1
            picture.line(x + slant * y, y, x + slant * (y + 0.2), y + 0.2, drop, 0.02)
        rim = [(0.9 * float(np.cos(a)), 0.15 - 0.75 * float(np.sin(a))) for a in np.linspace(0, np.pi, 20)]
        picture.shape(rim, scene.paint)
        picture.shape([(0.3 * x, y) for x, y in rim], lighter(scene.paint, 0.25))
        picture.line(0, 0.1, 0, 0.85, (50, 60, 80), 0.06)
        picture.line(0, 0.85, 0.16, 0.85, (50, 60, 80), 0.06)
        for hit, x in zip(hits, places, strict=True):
            top = 0.15 - 0.75 * float(np.sqrt(1 - (x / 0.9) ** 2))
            if 0 <= hit - time < 0.12:
                picture.line(x, top - 7 * (hit - time) - 0.18, x, top - 7 * (hit - time), drop, 0.05)
            elif 0 <= time - hit < 0.14:
                spread = 0.05 + 0.9 * (time - hit)
                picture.line(x, top, x - spread, top - 0.12, drop, 0.03)
                picture.line(x, top, x + spread, top - 0.12, drop, 0.03)
        picture.line(-0.9, 0.15, 0.9, 0.15, darker(scene.paint), 0.04)

    return Event(sound, draw)
