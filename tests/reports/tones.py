"""A sound of one pitch."""

import numpy as np

from aadml.reports.previews import RATE

TONE = 700
"""Pitch, in Hz."""


def tone(seconds, rate=RATE):
    return 0.5 * np.sin(2 * np.pi * TONE * np.arange(round(seconds * rate)) / rate)
