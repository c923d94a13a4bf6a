"""A sample clip as arrays: event, disturbances, camera and microphone."""

from dataclasses import dataclass

import numpy as np

from aadml.data.samples.background import background_noise, paint_background
from aadml.data.samples.events import EVENTS
from aadml.data.samples.picture import Image, Picture
from aadml.data.samples.scene import Event
from aadml.data.samples.setting import ClipTraits, draw_setting
from aadml.data.samples.sound import Signal, at_level

SIZE = 128
"""Width and height of every sample clip, in pixels."""

FRAME_RATE = 12
"""Pictures per second of every sample clip."""

EDITION = 1
"""Version of the clips and captions. A change of them raises it, because other versions may be in a cache."""


@dataclass(frozen=True)
class RenderedClip:
    """Clip before compression.

    Attributes:
        setting: traits from which the clip was rendered.
        sound: (samples,) in -1..1.
        pictures: (frames, SIZE, SIZE, 3), blue-green-red.
    """

    setting: ClipTraits
    sound: Signal
    pictures: Image


def render_clip(label: str, index: int, *, seconds: float, seed: int) -> RenderedClip:
    """Render a clip; the result depends only on these arguments, not on the number of clips.

    Args:
        label: a key of `EVENTS`.
        index: number of the clip.
        seconds: length of the clip, in seconds.
        seed: seed of the whole set.
    """
    streams = [np.random.default_rng(child) for child in np.random.SeedSequence([seed, index]).spawn(6)]
    setting = draw_setting(label, seconds, streams[0])
    event = EVENTS[label](setting.scene, streams[1])
    heard = None if setting.heard is None else EVENTS[setting.heard.label](setting.heard.scene, streams[2])
    seen = None if setting.seen is None else EVENTS[setting.seen.label](setting.seen.scene, streams[3])
    return RenderedClip(
        setting=setting,
        sound=_record(setting, event, heard, streams[4]),
        pictures=_film(setting, event, seen, streams[5]),
    )


def _record(setting: ClipTraits, event: Event, heard: Event | None, generator: np.random.Generator) -> Signal:
    sound = at_level(event.sound, 0.0)
    sound = sound + at_level(background_noise(setting.noise, setting.scene.seconds, generator), setting.noise_level)
    if heard is not None and setting.heard is not None:
        sound = sound + at_level(heard.sound, setting.heard.strength)
    spectrum = np.fft.rfft(sound)
    spectrum *= np.linspace(1 / spectrum.size, 1, spectrum.size) ** -setting.tilt
    spectrum[0] = 0
    colored = np.fft.irfft(spectrum, sound.size)
    return np.clip(at_level(colored, setting.loudness), -0.99, 0.99)


def _film(setting: ClipTraits, event: Event, seen: Event | None, generator: np.random.Generator) -> Image:
    wall = paint_background(SIZE, setting.clutter, generator)
    corner = generator.choice([-1.0, 1.0], 2) * 0.32
    right, down = setting.offset
    frames = np.empty((round(setting.scene.seconds * FRAME_RATE), SIZE, SIZE, 3), dtype=np.uint8)
    for number in range(len(frames)):
        image, time = wall.copy(), number / FRAME_RATE
        if seen is not None and setting.seen is not None:
            place = (SIZE * (0.5 + corner[0]), SIZE * (0.5 + corner[1]))
            seen.draw(Picture(image, place, SIZE * setting.seen.strength / 2), time)
        middle = (SIZE * (0.5 + right), SIZE * (0.5 + down))
        event.draw(Picture(image, middle, SIZE * setting.size / 2), time)
        grain = generator.standard_normal((SIZE, SIZE, 1), dtype=np.float32) * np.float32(setting.grain)
        frames[number] = np.clip(image * np.float32(setting.light) + grain, 0, 255)
    return frames
