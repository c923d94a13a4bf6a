"""How encoders pass a batch while they train: in which type they multiply, how many clips at a time."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, TypeVar

import torch
from torch import nn

from aadml.comparison.processes import group
from aadml.feature_extraction.frontends.inference import bfloat16_units
from aadml.feature_extraction.ground.errors import InputError
from aadml.layers.linear import Linear
from aadml.layers.tanh import Tanh
from aadml.methods.networks import Layers
from aadml.methods.training.learner import Learner
from aadml.methods.training.settings import Precision

_Module = TypeVar("_Module", bound=nn.Module)

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
    layers = _of_kind(Linear, learner)
    if asked == "bfloat16" and (learner.in_bfloat16 == "no" or not layers):
        raise InputError("training.precision: bfloat16 given; this method trains in float32 alone, or auto")
    if asked != "auto":
        return asked
    pays = learner.in_bfloat16 == "shown" and max(map(_width, layers), default=0) >= PAYS_FROM
    return "bfloat16" if pays and bfloat16_units(learner.device) else "float32"


@contextmanager
def computed_in(precision: Precision, learner: Learner) -> Iterator[None]:
    """Let the layers of a learner and of its losses multiply in a precision as long as the context lasts."""
    layers: list[Linear | Tanh] = [*_of_kind(Linear, learner), *_of_kind(Tanh, learner)]
    for layer in layers:
        layer.reduced = torch.bfloat16 if precision == "bfloat16" else None
    try:
        yield
    finally:
        for layer in layers:
            layer.reduced = None


@contextmanager
def passed_in_parts(clips: int, learner: Learner) -> Iterator[None]:
    """Let the layers of a learner pass so many clips at a time as long as the context lasts; 0 passes all at once.

    Losses see the whole batch, and gradients are its own: each part is passed once without what a gradient needs, and
    again when its gradient is asked for (GradCache: Gao et al., Scaling deep contrastive learning batch size under
    memory limited setup, RepL4NLP 2021).

    Raises:
        InputError: parts are asked of a learner that has no layers of its own, or of one process among several, which
            draws for the whole batch.
    """
    networks = _of_kind(Layers, learner)
    if clips and not networks:
        raise InputError("training.micro_batch: this method's networks take a batch whole; leave it at 0")
    if clips and group.count() > 1:
        raise InputError(
            f"training.micro_batch: {clips} given; several processes divide a batch already, leave it at 0"
        )
    for one in networks:
        one.rows_at_once = clips
    try:
        yield
    finally:
        for one in networks:
            one.rows_at_once = 0


def _of_kind(kind: type[_Module], learner: Learner) -> list[_Module]:
    return [module for module in learner.modules() if isinstance(module, kind)]


def _width(layer: Linear) -> int:
    """Give the smaller side of a layer's product."""
    return min(layer.in_features, layer.out_features)
