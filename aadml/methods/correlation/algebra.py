"""Linear algebra of the CCA family, in double precision.

S_aa and S_vv are the covariances of two modalities a and v, and S_av is their cross-covariance. The singular value
decomposition of T = S_aa^{-1/2} S_av S_vv^{-1/2} is U D V'. With the first k columns of U and V, the projections to
k dimensions are A = S_aa^{-1/2} U_k and B = S_vv^{-1/2} V_k. The diagonal of D contains the canonical correlations
(Hotelling, 1936; Mardia, Kent and Bibby, 1979).

Reference: Hotelling, Relations between two sets of variates, Biometrika 1936, https://doi.org/10.1093/biomet/28.3-4.321
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from aadml.feature_extraction.ground.errors import InputError

EIGENVALUE_FLOOR = 1e-9


@dataclass(frozen=True)
class Canonical:
    """Solution of a correlation problem.

    Attributes:
        first: (d1, k) projection of the first modality.
        second: (d2, k) projection of the second modality.
        correlations: (k,) canonical correlations, descending.
    """

    first: Tensor
    second: Tensor
    correlations: Tensor


def centered(values: Tensor) -> tuple[Tensor, Tensor]:
    """Return values (n, d) without their mean, in double precision, and the mean (d,)."""
    exact = values.double()
    mean = exact.mean(0)
    return exact - mean, mean


def covariance(values: Tensor, ridge: float) -> Tensor:
    """Compute the covariance (d, d) of centered values (n, d), plus `ridge` on the diagonal."""
    count = max(len(values) - 1, 1)
    return values.T @ values / count + ridge * torch.eye(values.shape[1], dtype=values.dtype, device=values.device)


def cross_covariance(first: Tensor, second: Tensor) -> Tensor:
    """Compute the cross-covariance (d1, d2) of centered, paired values (n, d1) and (n, d2)."""
    return first.T @ second / max(len(first) - 1, 1)


def cluster_cross_covariance(first: Tensor, second: Tensor, labels: Tensor) -> Tensor:
    """Compute the cross-covariance over all pairs (x_i, y_j) of equal class (cluster CCA, Rasiwasia et al., 2014).

        (1/M) sum over c of sum over i, j in c of x_i y_j'  =  (1/M) sum over c of n_c^2 m_c^x m_c^y',   M = sum n_c^2

    Class c has n_c clips, and m_c^x and m_c^y are the means of x and y over these clips.

    Reference: Rasiwasia et al., Cluster canonical correlation analysis, AISTATS 2014, https://proceedings.mlr.press/v33/rasiwasia14.html

    Args:
        first: (n, d1) centered.
        second: (n, d2) centered.
        labels: (n,) int64.

    Returns:
        (d1, d2), of rank at most C - 1 for C classes.
    """
    members = torch.nn.functional.one_hot(labels, int(labels.max()) + 1).to(first.dtype)
    sums_first, sums_second = members.T @ first, members.T @ second
    return sums_first.T @ sums_second / members.sum(0).square().sum()


def mixed_cross_covariance(first: Tensor, second: Tensor, labels: Tensor, pair_weight: float | None) -> Tensor:
    """Mix the cross-covariances (d1, d2) of pairs and of clusters, with weights `pair_weight` and 1 - `pair_weight`.

    If `pair_weight` is None, return the cross-covariance of pairs. The values `first` (n, d1) and `second` (n, d2) are
    centered, and the labels (n,) are classes.
    """
    if pair_weight is None:
        return cross_covariance(first, second)
    clusters = cluster_cross_covariance(first, second, labels)
    return pair_weight * cross_covariance(first, second) + (1 - pair_weight) * clusters


def inverse_square_root(matrix: Tensor, floor: float = EIGENVALUE_FLOOR) -> Tensor:
    """Compute the symmetric inverse square root of a positive semi-definite matrix (d, d).

    Directions whose eigenvalue is below `floor` times the largest are omitted (pseudo-inverse).
    """
    eigenvalues, vectors = torch.linalg.eigh(matrix)
    large = eigenvalues > floor * eigenvalues[-1].clamp_min(torch.finfo(matrix.dtype).tiny)
    scales = torch.where(large, eigenvalues.clamp_min(torch.finfo(matrix.dtype).tiny).rsqrt(), 0.0)
    root: Tensor = (vectors * scales) @ vectors.T
    return root


def canonical(first: Tensor, second: Tensor, cross: Tensor, dimension: int) -> Canonical:
    """Return the `dimension` most correlated directions, with their correlations.

    Args:
        first: (d1, d1) covariance of the first modality.
        second: (d2, d2) covariance of the second modality.
        cross: (d1, d2) cross-covariance.
        dimension: number of directions, k.

    Raises:
        InputError: k is below 1, or larger than the smaller number of feature dimensions.
    """
    possible = min(cross.shape)
    if not 1 <= dimension <= possible:
        raise InputError(f"method.dimension is {dimension}; pass a whole number from 1 to {possible}")
    root_first, root_second = inverse_square_root(first), inverse_square_root(second)
    left, correlations, right = torch.linalg.svd(root_first @ cross @ root_second, full_matrices=False)
    projections = root_first @ left[:, :dimension], root_second @ right[:dimension].T
    return Canonical(*_signed(*projections), correlations[:dimension])


def _signed(first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
    """Fix the signs of paired directions: in each direction of `first`, the weight of largest magnitude is positive."""
    signs = first.gather(0, first.abs().argmax(0, keepdim=True)).sign()
    return first * signs, second * signs
