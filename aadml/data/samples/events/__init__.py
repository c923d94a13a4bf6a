"""The ten everyday events of the sample clips; each gives its sound and its picture from one timeline."""

from collections.abc import Callable

import numpy as np

from aadml.data.samples.events.bird import bird
from aadml.data.samples.events.bouncing_ball import bouncing_ball
from aadml.data.samples.events.engine import engine
from aadml.data.samples.events.heartbeat import heartbeat
from aadml.data.samples.events.helicopter import helicopter
from aadml.data.samples.events.metronome import metronome
from aadml.data.samples.events.rain import rain
from aadml.data.samples.events.siren import siren
from aadml.data.samples.events.telephone_keypad import telephone_keypad
from aadml.data.samples.events.typing import typing
from aadml.data.samples.scene import Event, Scene

EVENTS: dict[str, Callable[[Scene, np.random.Generator], Event]] = {
    "bouncing ball": bouncing_ball,
    "metronome": metronome,
    "siren": siren,
    "rain": rain,
    "engine": engine,
    "telephone keypad": telephone_keypad,
    "heartbeat": heartbeat,
    "bird": bird,
    "helicopter": helicopter,
    "typing": typing,
}
"""What a sample clip can show, by label; the order is the order of the labels."""
