"""Losses that several methods share: losses of pairs (DSCMR, Zhen et al., CVPR 2019), labels, triplets, weighted sums.

Reference: Zhen et al., Deep supervised cross-modal retrieval, CVPR 2019, https://openaccess.thecvf.com/content_CVPR_2019/html/Zhen_Deep_Supervised_Cross-Modal_Retrieval_CVPR_2019_paper.html
"""

from collections.abc import Callable, Mapping
from itertools import combinations, combinations_with_replacement

import torch
from torch import Tensor

from aadml.comparison.features import Modality
from aadml.comparison.pairwise import at_least_float32, cosine
from aadml.losses.kernels.likelihood import softplus
from aadml.methods.method import Context
from aadml.objective import Objective
from aadml.objective.composition import (
    ALL_PAIRS,
    LabelLossSection,
    LossSection,
    SelectionSection,
    Space,
    Weighted,
    compose_objective,
)


def same_class_loss(first: Tensor, second: Tensor, labels: Tensor) -> Tensor:
    """Compute the negative log-likelihood of equal classes over all pairs, with half the cosine as log-odds.

        T = mean over i, j of  log(1 + exp(theta_ij)) - S_ij theta_ij,   theta_ij = cos(x_i, y_j) / 2

    Args:
        first: x (b, d).
        second: y (b, d), rows paired with those of `first`.
        labels: (b,) int64; S_ij = 1 where the labels of i and j are equal, else 0.

    Returns:
        A scalar.
    """
    theta = cosine(at_least_float32(first), at_least_float32(second)) / 2
    same = labels[:, None] == labels[None, :]
    return (softplus(theta) - theta.masked_fill(~same, 0)).mean()


def same_class_losses(vectors: Mapping[Modality, Tensor], labels: Tensor) -> Tensor:
    """Return the sum of `same_class_loss` over all pairs of modalities, including a modality paired with itself.

    Args:
        vectors: modality -> (b, d).
        labels: (b,) int64.

    Returns:
        A scalar.
    """
    pairs = combinations_with_replacement(vectors.values(), 2)
    return torch.stack([same_class_loss(first, second, labels) for first, second in pairs]).sum()


def partner_distance(vectors: Mapping[Modality, Tensor]) -> Tensor:
    """Return the sum over pairs of different modalities of the mean Euclidean distance between partners.

    Args:
        vectors: modality -> (b, d).

    Returns:
        A scalar.
    """
    pairs = combinations(vectors.values(), 2)
    return torch.stack([torch.linalg.vector_norm(first - second, dim=1).mean() for first, second in pairs]).sum()


def weighted_loss(parts: Mapping[str, Tensor], weights: Mapping[str, float]) -> dict[str, Tensor]:
    """Return the weighted sum of the parts of a loss as "loss", and each part as "NAME_loss" for the log."""
    loss = torch.stack([weights[name] * part for name, part in parts.items()]).sum()
    return {"loss": loss} | {f"{name}_loss": part for name, part in parts.items()}


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


def triplet_objective(
    context: Context, width: int, *, selection: SelectionSection = ALL_PAIRS, **options: float | str
) -> Objective:
    """Build a triplet objective in all directions.

    Args:
        context: modalities and classes.
        width: d of the vectors.
        selection: selection of the triplets.
        options: options of the loss `triplet`.

    Raises:
        InputError: an option is not valid.
    """
    space = Space(context.modalities, width, classes=context.classes)
    loss = LossSection.of("triplet", **options)
    return compose_objective(space, loss=loss, selection=selection)
