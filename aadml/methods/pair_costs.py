"""What pairs of vectors of two modalities cost in a common space (DSCMR, Zhen et al., CVPR 2019)."""

from collections.abc import Mapping
from itertools import combinations, combinations_with_replacement

import torch
from torch import Tensor

from aadml.comparison.features import Modality
from aadml.comparison.pairwise import at_least_float32, cosine
from aadml.losses.kernels.likelihood import softplus


def same_class_cost(first: Tensor, second: Tensor, labels: Tensor) -> Tensor:
    """Negative log-likelihood of who is of one class, a pair's log-odds being half its cosine.

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


def same_class_costs(vectors: Mapping[Modality, Tensor], labels: Tensor) -> Tensor:
    """Sum `same_class_cost` over every pair of modalities and within each: vectors (b, d) a modality -> a scalar."""
    pairs = combinations_with_replacement(vectors.values(), 2)
    return torch.stack([same_class_cost(first, second, labels) for first, second in pairs]).sum()


def partners_apart(vectors: Mapping[Modality, Tensor]) -> Tensor:
    """Mean Euclidean distance between partners, summed over pairs of modalities: vectors (b, d) -> a scalar."""
    lengths = [torch.linalg.vector_norm(one - other, dim=1).mean() for one, other in combinations(vectors.values(), 2)]
    return torch.stack(lengths).sum()
