"""A siren under a beacon: the light flashes as the tone rises."""

import numpy as np

from aadml.data.samples.picture import Picture, darker, lighter, mixed
from aadml.data.samples.scene import Event, Scene
from aadml.data.samples.sound import Signal, oscillate, time_axis


def siren(scene: Scene, generator: np.random.Generator) -> Event:
    """Return the event of a siren that wails or alternates between two tones, at 0.7 to 3 cycles a second."""
    rate, phase = scene.between(0.7, 3.0), generator.uniform(0, 1)
    steps, ratio = bool(generator.random() < 0.5), generator.uniform(1.25, 1.7)
    low, edge = scene.tone(420, 1100), generator.uniform(0.1, 0.5)

    def height(time: Signal | float) -> Signal:
        wave = np.sin(2 * np.pi * (np.asarray(time) * rate + phase))
        return np.asarray(np.clip(6 * wave, -1, 1) / 2 + 0.5 if steps else wave / 2 + 0.5)

    tone = low * ratio ** height(time_axis(scene.seconds))
    sound = sum((edge**part * oscillate((part + 1) * tone, scene.seconds) for part in range(5)), np.zeros_like(tone))

    def draw(picture: Picture, time: float) -> None:
        light = float(height(time))
        picture.shape([(-0.95, 0.85), (-0.8, 0.3), (0.8, 0.3), (0.95, 0.85)], (120, 115, 110))
        picture.shape([(-0.7, 0.75), (-0.62, 0.42), (0.62, 0.42), (0.7, 0.75)], (70, 60, 50))
        picture.box(-0.42, 0.18, 0.42, 0.3, (60, 60, 60))
        lamp = mixed(darker(scene.paint, 0.6), lighter(scene.paint, 0.5), light)
        picture.shape([(-0.34, 0.2), (-0.28, -0.25), (-0.12, -0.4), (0.12, -0.4), (0.28, -0.25), (0.34, 0.2)], lamp)
        picture.oval(-0.12, -0.15, 0.05, 0.14, lighter(lamp, 0.5))
        if light > 0.15:
            picture.glow(0, -0.1, 1.5, lighter(scene.paint, 0.3), 0.85 * light)

    return Event(np.asarray(sound, dtype=np.float64), draw)
