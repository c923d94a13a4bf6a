"""Precision of training."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, TypeVar

import torch
from torch import nn

from aadml.feature_extraction.frontends.inference import bfloat16_units
from aadml.feature_extraction.ground.errors import InputError
from aadml.layers.linear import Linear
from aadml.layers.tanh import Tanh
from aadml.methods.training.learner import Learner
from aadml.methods.training.settings import Precision

_Module = TypeVar("_Module", bound=nn.Module)

PAYS_FROM = 512
"""Smallest width (inputs and outputs) of the widest layer for bfloat16 to save more time than conversions take."""


def resolved(precision: Precision, learner: Learner) -> Literal["float32", "tf32", "bfloat16"]:
    """Return the precision of a learner's training on its device.

    Args:
        precision: `training.precision`.
        learner: learner to train.

    Raises:
        InputError: `precision` is bfloat16 or tf32, but the learner needs float32, or has no `layers.linear.Linear`.
    """
    layers = _of_kind(Linear, learner)
    if precision in ("bfloat16", "tf32") and (learner.in_bfloat16 == "no" or not layers):
        raise InputError(
            f"training.precision is {precision}, but this method supports only float32; set training.precision to "
            "float32 or auto"
        )
    if precision != "auto":
        return precision
    widest = max((min(layer.in_features, layer.out_features) for layer in layers), default=0)
    pays = learner.in_bfloat16 == "shown" and widest >= PAYS_FROM
    return "bfloat16" if pays and bfloat16_units(learner.device) else "float32"


def check_device(precision: Precision, device: torch.device) -> None:
    """Raise InputError for the precision tf32 on a device other than a CUDA device."""
    if precision == "tf32" and device.type != "cuda":
        raise InputError(
            f"training.precision is tf32, but the device is {device.type}; train on a CUDA device, or choose float32, "
            "bfloat16 or auto"
        )


@contextmanager
def computed_in(precision: Precision, learner: Learner) -> Iterator[None]:
    """Return a context in which the linear and tanh layers of a learner compute in a precision.

    TF32 applies to every product of float32 matrices on a CUDA device, including the products of losses.
    """
    products = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if precision == "tf32" else products)
    layers: list[Linear | Tanh] = [*_of_kind(Linear, learner), *_of_kind(Tanh, learner)]
    for layer in layers:
        layer.reduced = torch.bfloat16 if precision == "bfloat16" else None
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(products)
        for layer in layers:
            layer.reduced = None


def _of_kind(kind: type[_Module], learner: Learner) -> list[_Module]:
    return [module for module in learner.modules() if isinstance(module, kind)]
