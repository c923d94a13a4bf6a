"""A heart that beats: the heart swells with the first, deeper sound, and less with the second."""

import numpy as np

from aadml.data.samples.picture import Picture, darker, lighter
from aadml.data.samples.scene import Event, Scene, beats, since
from aadml.data.samples.sound import Signal, hiss, lay, strike, time_axis


def heartbeat(scene: Scene, generator: np.random.Generator) -> Event:
    """Return the event of a heart at 55 to 170 beats a minute, as through a stethoscope."""
    period = 60 / scene.between(55, 170)
    firsts = beats(generator, scene, period, jitter=0.04)
    gap = generator.uniform(0.28, 0.38) * period
    seconds = [first + gap for first in firsts]
    low, soft = scene.tone(55, 130), generator.uniform(0.4, 0.8)
    pieces = [(first, _beat(low)) for first in firsts] + [(second, soft * _beat(1.35 * low)) for second in seconds]
    murmur = generator.uniform(0.01, 0.06) * hiss(generator, scene.seconds, 60, 500, tilt=0.5)
    angle = np.linspace(0, 2 * np.pi, 40)
    outline = np.stack(
        [np.sin(angle) ** 3, -(13 * np.cos(angle) - 5 * np.cos(2 * angle) - 2 * np.cos(3 * angle)) / 16], axis=1
    )

    def draw(picture: Picture, time: float) -> None:
        swell = 1.0 * _bump(since(time, firsts)) + soft * _bump(since(time, seconds))
        size = 0.6 * (1 + 0.32 * min(swell, 1.0))
        for scale, paint in ((1.12, darker(scene.paint, 0.55)), (1.0, scene.paint)):
            picture.shape([(size * scale * float(x), size * scale * float(y)) for x, y in outline], paint)
        picture.oval(-0.42 * size, -0.4 * size, 0.14 * size, 0.2 * size, lighter(scene.paint, 0.6))

    return Event(lay(murmur * np.ones_like(time_axis(scene.seconds)), pieces), draw)


def _beat(frequency: float) -> Signal:
    return strike(frequency, 0.16, drop=0.3, decay=5) + 0.3 * strike(2.1 * frequency, 0.16, drop=0.3, decay=8)


def _bump(age: float) -> float:
    return float(np.exp(-age / 0.09)) if age < 1 else 0.0
