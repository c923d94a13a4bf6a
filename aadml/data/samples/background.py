"""Background of an event: a lit wall with objects for the picture, noise for the sound."""

import numpy as np

from aadml.data.samples.picture import Color, Image, Picture, mixed
from aadml.data.samples.sound import RATE, Signal, hiss, oscillate, time_axis


def paint_background(size: int, clutter: int, generator: np.random.Generator) -> Image:
    """Return a picture (size, size, 3) of a wall in two shades with `clutter` faint objects."""
    top, bottom = _shade(generator), _shade(generator)
    rows = np.linspace(0, 1, size)[:, None, None]
    wall = (1 - rows) * np.asarray(top) + rows * np.asarray(bottom)
    image = np.ascontiguousarray(np.broadcast_to(wall, (size, size, 3)).astype(np.uint8))
    picture = Picture(image, (size / 2, size / 2), size / 2)
    for _ in range(clutter):
        x, y = generator.uniform(-1, 1, 2)
        width, height = generator.uniform(0.05, 0.35, 2)
        paint = mixed(mixed(top, bottom, float(generator.random())), _shade(generator), 0.6)
        if generator.random() < 0.5:
            picture.box(x - width, y - height, x + width, y + height, paint)
        else:
            picture.oval(x, y, width, height, paint)
    return image


def background_noise(kind: str, seconds: float, generator: np.random.Generator) -> Signal:
    """Return noise (samples,) of `kind`, one of `setting.NOISES`."""
    time = time_axis(seconds)
    if kind == "hiss":
        return hiss(generator, seconds, 200, 7800)
    if kind == "rumble":
        return hiss(generator, seconds, 40, 900, tilt=0.8)
    if kind == "hum":
        base = float(generator.uniform(48, 62))
        tones = (oscillate(base * part, seconds) / part for part in (1, 2, 3, 4, 6))
        return np.asarray(sum(tones, 0.1 * hiss(generator, seconds, 100, 4000, tilt=0.5)))
    pace, phase = generator.uniform(2, 6, 3), generator.uniform(0, 2 * np.pi, 3)
    swell = sum(1 + np.sin(2 * np.pi * rate * time + start) for rate, start in zip(pace, phase, strict=True))
    return np.asarray(swell * hiss(generator, round(seconds * RATE) / RATE, 200, 3400, tilt=0.7))


def _shade(generator: np.random.Generator) -> Color:
    gray = float(generator.uniform(70, 215))
    blue, green, red = np.clip(gray + generator.uniform(-35, 35, 3), 0, 255)
    return float(blue), float(green), float(red)
