"""Regression of labels: an encoder into label space for each modality, and the label loss of all modalities."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from aadml.comparison.features import Modality
from aadml.methods.method import Context
from aadml.methods.networks import LabelSpaceEncoder, NetworkOptions, PerModality, encoders
from aadml.objective.composition import LabelLossSection, Weighted


def label_space_encoders(context: Context, method: str, network: NetworkOptions) -> PerModality[LabelSpaceEncoder]:
    """Build an encoder into label space for every modality, from (b, d) to (b, C).

    Args:
        context: dimensions and classes.
        method: name of the method, for the message.
        network: layers of the encoders, see `NetworkOptions`.

    Raises:
        InputError: clips without exactly one class, features other than vectors, or only one modality.
    """
    return encoders(context, method, context.need_classes(method), network)


def summed_label_loss(section: LabelLossSection) -> Callable[[Mapping[Modality, Tensor], Tensor], Tensor]:
    """Return a function that computes the label loss of all modalities.

    Returns:
        Function of two arguments: the vectors (b, C) of each modality, as a mapping, and the labels (b,). The
        result is the sum of the losses over modalities, times the weight of the section.
    """
    loss, weight = section.build(), section.shared(Weighted).weight

    def of_all(vectors: Mapping[Modality, Tensor], labels: Tensor) -> Tensor:
        return weight * torch.stack([loss(values, labels) for values in vectors.values()]).sum()

    return of_all
