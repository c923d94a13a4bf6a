"""Regression of labels: an encoder into label space for each modality, and what distance from the label costs."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from aadml.comparison.types import Modality
from aadml.losses import LABEL_LOSSES
from aadml.methods.method import Context
from aadml.methods.networks import LabelSpaceEncoder, label_space_network
from feature_extraction.ground.errors import InputError
from feature_extraction.ground.options import checked_options
from feature_extraction.ground.tables import lookup


def need_vectors(context: Context, method: str) -> None:
    """Refuse modalities whose features are no vectors.

    Args:
        context: dimensions of the modalities.
        method: who asks, for the message.

    Raises:
        InputError: there is such a modality.
    """
    for modality, dimension in context.dimensions.items():
        if not dimension:
            raise InputError(f"{method} needs features as vectors; the {modality} features are made batch by batch")


def label_space_encoders(context: Context, method: str, network: Mapping[str, Any]) -> nn.ModuleDict:
    """Build an encoder into label space for every modality: (b, d) -> (b, C).

    Args:
        context: dimensions and classes.
        method: who asks, for the message.
        network: the section of that name, see `label_space_network`.

    Raises:
        InputError: an unknown option, or a modality whose features are no vectors.
    """
    need_vectors(context, method)
    options = checked_options(label_space_network, network, "network")
    return nn.ModuleDict(
        {m: LabelSpaceEncoder(size, context.classes, **options) for m, size in context.dimensions.items()}
    )


def label_cost(section: Mapping[str, Any] | str) -> Callable[[Mapping[Modality, Tensor], Tensor], Tensor]:
    """Bind a label loss: the section `label_loss` -> a function of modality -> vectors (b, C) and labels (b,).

    Args:
        section: a name of LABEL_LOSSES, alone or with `weight` and the loss's options.

    Returns:
        The sum over modalities, times the weight.

    Raises:
        InputError: an unknown name or option.
    """
    options = {"name": section} if isinstance(section, str) else dict(section)
    entry = lookup(LABEL_LOSSES, options.pop("name"), "label loss")
    weight = float(options.pop("weight", 1.0))
    cost = partial(entry, **checked_options(entry, options, "label_loss"))

    def of_all(vectors: Mapping[Modality, Tensor], labels: Tensor) -> Tensor:
        return weight * torch.stack([cost(values, labels) for values in vectors.values()]).sum()

    return of_all
