"""How encoders pass a batch while they train: in which type they multiply, how many clips at a time."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import torch
from torch import nn

from aadml.methods.learner import Learner
from aadml.methods.networks import Layers
from aadml.methods.settings import Precision
from feature_extraction.ground.errors import InputError
from feature_extraction.network_run import bfloat16_units

PAYS_FROM = 512
"""Inputs and outputs of the widest layer from which on bfloat16 saves more than the conversions take."""


def resolved(asked: Precision, learner: Learner) -> Literal["float32", "bfloat16"]:
    """Say in which precision a learner trains on its device.

    Args:
        asked: `training.precision`.
        learner: what is trained.

    Raises:
        InputError: bfloat16 is asked of a learner that has no layers for it, or whose sums need all digits.
    """
    networks = _layers(learner)
    if asked == "bfloat16" and (learner.in_bfloat16 == "no" or not networks):
        raise InputError("training.precision: bfloat16 given; this method trains in float32 alone, or auto")
    if asked != "auto":
        return asked
    pays = learner.in_bfloat16 == "shown" and max(map(_width, networks), default=0) >= PAYS_FROM
    return "bfloat16" if pays and bfloat16_units(learner.device) else "float32"


@contextmanager
def computed_in(precision: Precision, learner: Learner) -> Iterator[None]:
    """Let the layers of a learner multiply in a precision as long as the context lasts."""
    networks = _layers(learner) if precision == "bfloat16" else []
    for one in networks:
        one.reduced = torch.bfloat16
    try:
        yield
    finally:
        for one in networks:
            one.reduced = None


@contextmanager
def passed_in_parts(clips: int, learner: Learner) -> Iterator[None]:
    """Let the layers of a learner pass so many clips at a time as long as the context lasts; 0 passes all at once.

    Losses see the whole batch, and gradients are its own: each part is passed once without what a gradient needs, and
    again when its gradient is asked for (GradCache: Gao et al., Scaling deep contrastive learning batch size under
    memory limited setup, RepL4NLP 2021).

    Raises:
        InputError: parts are asked of a learner that has no layers of its own.
    """
    networks = _layers(learner)
    if clips and not networks:
        raise InputError("training.micro_batch: this method's networks take a batch whole; leave it at 0")
    for one in networks:
        one.rows_at_once = clips
    try:
        yield
    finally:
        for one in networks:
            one.rows_at_once = 0


def _layers(learner: Learner) -> list[Layers]:
    return [module for module in learner.modules() if isinstance(module, Layers)]


def _width(network: Layers) -> int:
    """Give the smaller side of the widest product of a network."""
    return max((min(m.in_features, m.out_features) for m in network if isinstance(m, nn.Linear)), default=0)
