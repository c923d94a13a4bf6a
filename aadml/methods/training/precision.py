"""Precision of a training, and the number of clips that pass the encoders at a time."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
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
"""Smallest width (inputs and outputs) of the widest layer at which bfloat16 saves more time than conversions take."""


def resolved(precision: Precision, learner: Learner) -> Literal["float32", "bfloat16"]:
    """Return the precision in which a learner trains on its device.

    Args:
        precision: `training.precision`.
        learner: learner to train.

    Raises:
        InputError: bfloat16 is set, but the learner has no layers for it or needs float32 sums.
    """
    layers = _of_kind(Linear, learner)
    if precision == "bfloat16" and (learner.in_bfloat16 == "no" or not layers):
        raise InputError("training.precision: bfloat16 given, but this method needs float32; choose float32 or auto")
    if precision != "auto":
        return precision
    widest = max((min(layer.in_features, layer.out_features) for layer in layers), default=0)
    pays = learner.in_bfloat16 == "shown" and widest >= PAYS_FROM
    return "bfloat16" if pays and bfloat16_units(learner.device) else "float32"


def computed_in(precision: Precision, learner: Learner) -> AbstractContextManager[None]:
    """Return a context in which the layers of a learner and of its losses multiply in a precision."""
    layers: list[nn.Module] = [*_of_kind(Linear, learner), *_of_kind(Tanh, learner)]
    return _changed(layers, "reduced", torch.bfloat16 if precision == "bfloat16" else None, None)


def passed_in_parts(clips: int, learner: Learner) -> AbstractContextManager[None]:
    """Return a context in which `clips` rows pass the layers of a learner at a time; 0 passes all at once.

    Losses receive the whole batch, and the gradients are those of the whole batch. Each part passes once without its
    graph, and again when its gradient is computed (GradCache: Gao et al., Scaling deep contrastive learning batch size
    under memory limited setup, RepL4NLP 2021).

    Raises:
        InputError: `clips` is set for a learner without `Layers`, or with several processes (each process
            draws for the whole batch).
    """
    networks = _of_kind(Layers, learner)
    if clips and not networks:
        raise InputError(
            f"training.micro_batch: {clips} given, but the networks of this method cannot divide a batch; choose 0"
        )
    if clips and group.count() > 1:
        raise InputError(f"training.micro_batch: {clips} given, but several processes already divide a batch; choose 0")
    return _changed(networks, "rows_at_once", clips, 0)


@contextmanager
def _changed(modules: Sequence[nn.Module], attribute: str, value: object, default: object) -> Iterator[None]:
    for module in modules:
        setattr(module, attribute, value)
    try:
        yield
    finally:
        for module in modules:
            setattr(module, attribute, default)


def _of_kind(kind: type[_Module], learner: Learner) -> list[_Module]:
    return [module for module in learner.modules() if isinstance(module, kind)]
