"""Regression of labels: an encoder into label space for each modality, and the label loss of its outputs."""

from collections.abc import Callable, Mapping
from functools import partial

import torch
from torch import Tensor

from aadml.comparison.features import Modality
from aadml.feature_extraction.ground.contracts import require_result
from aadml.feature_extraction.ground.registry import lookup
from aadml.losses import LABEL_LOSSES
from aadml.losses.contract import LabelLossFunction
from aadml.methods.method import Context
from aadml.methods.networks import LabelSpaceEncoder, NetworkOptions, PerModality
from aadml.objective.composition import Weighted
from aadml.objective.left_out import LeftOut, is_left_out
from aadml.objective.sections import Section, named


def label_space_encoders(context: Context, method: str, network: NetworkOptions) -> PerModality[LabelSpaceEncoder]:
    """Build an encoder into label space for every modality: (b, d) -> (b, C).

    Args:
        context: dimensions and classes.
        method: name of the method, for the message.
        network: layers of the encoders.

    Raises:
        InputError: the features of a modality are not vectors, or the clips have no classes.
    """
    context.need_vectors(method)
    classes = context.need_classes(method)
    return PerModality({m: LabelSpaceEncoder(size, classes, network) for m, size in context.dimensions.items()})


def bound_label_loss(section: Section) -> tuple[Callable[[Tensor, Tensor], Tensor], float]:
    """Return the label loss of the section `label_loss`, bound to its options, and its weight.

    Raises:
        InputError: an unknown name or option.
    """
    chosen = named(section)

    def build() -> Callable[[Tensor, Tensor], Tensor]:
        entry = lookup(LABEL_LOSSES, chosen.name, "label loss")
        return _checked(chosen.name, partial(entry, **chosen.keywords(entry, "label_loss", Weighted)))

    bound = LeftOut(build) if is_left_out(LABEL_LOSSES, chosen.name) else build()
    return bound, chosen.shared(Weighted).weight


def _checked(name: str, loss: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
    return lambda outputs, labels: require_result(loss(outputs, labels), LabelLossFunction, "label loss", name)


def summed_label_loss(section: Section) -> Callable[[Mapping[Modality, Tensor], Tensor], Tensor]:
    """Return the label loss of the section `label_loss` as a function of vectors (b, C) by modality and labels (b,).

    Returns:
        The sum over modalities, times the weight.

    Raises:
        InputError: an unknown name or option.
    """
    loss, weight = bound_label_loss(section)

    def of_all(vectors: Mapping[Modality, Tensor], labels: Tensor) -> Tensor:
        return weight * torch.stack([loss(values, labels) for values in vectors.values()]).sum()

    return of_all
