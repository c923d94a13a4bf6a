"""EVENTS: the ten everyday events of the sample clips; each renders its sound and its picture from one timeline."""

from collections.abc import Callable

import numpy as np

from aadml.data.samples.scene import Event, Scene
from aadml.feature_extraction.ground.registry import Registry

_NAMES = (
    "bouncing ball", "metronome", "siren", "rain", "engine", "telephone keypad", "heartbeat", "bird", "helicopter",
    "typing",
)  # fmt: skip
_PLACES = {name: "aadml.data.samples.events.{0}:{0}".format(name.replace(" ", "_")) for name in _NAMES}

EVENTS: Registry[Callable[[Scene, np.random.Generator], Event]] = Registry("event", _PLACES)
"""Label -> `(scene, generator) -> Event`; the order is the order of the labels."""
