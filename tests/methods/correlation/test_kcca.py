"""Kernel CCA against independent computations."""

import numpy as np
import scipy.linalg
import torch
from scipy.spatial.distance import pdist
from sklearn.metrics.pairwise import rbf_kernel

from aadml.methods.correlation import kcca
from aadml.methods.correlation.algebra import canonical, centered
from tests.methods.correlation.closed_forms import clips, fitted


def test_exact_kernel_cca_solves_the_generalized_eigenproblem():
    data = clips(40)
    method = fitted("kcca", data, dimension=3, ridge=0.3)
    kernels = []
    for modality in data.modalities:
        mapped = method.maps[modality](data.matrix(modality))
        mapped = mapped - mapped.mean(0)
        kernels.append((mapped @ mapped.T).numpy())
    first, second = kernels
    zero, jitter = np.zeros_like(first), 1e-9 * np.eye(40)
    left = np.block([[zero, first @ second], [second @ first, zero]])
    own = [0.7 * kernel @ kernel + 0.3 * kernel + jitter for kernel in kernels]
    right = np.block([[own[0], zero], [zero, own[1]]])
    expected = np.sort(scipy.linalg.eigh(left, right, eigvals_only=True))[::-1][:3]
    first, second = (centered(method.maps[m](data.matrix(m)))[0] for m in data.modalities)
    solution = canonical(kcca._regularized(first, 0.3), kcca._regularized(second, 0.3), first.T @ second / 39, 3)
    np.testing.assert_allclose(solution.correlations.numpy(), expected, atol=1e-5)


def test_inner_products_of_what_kcca_maps_to_are_the_kernel_at_the_median_distance():
    data = clips(40)
    method = fitted("kcca", data, dimension=3)
    for modality in data.modalities:
        values = data.matrix(modality).double()
        distances = np.sort(pdist(values.numpy()))
        expected = rbf_kernel(values.numpy(), gamma=1 / distances[(len(distances) - 1) // 2] ** 2)
        mapped = method.maps[modality](values)
        np.testing.assert_allclose((mapped @ mapped.T).numpy(), expected, atol=1e-5)


def test_of_the_polynomial_kernel_the_inner_products_are_its_cubes():
    data = clips(12, (6, 9))
    method = fitted("kcca", data, dimension=3, kernel="polynomial")
    for modality in data.modalities:
        values = data.matrix(modality).double()
        expected = [[(1 + float(x @ z) / values.shape[1]) ** 3 for z in values] for x in values]
        mapped = method.maps[modality](values)
        np.testing.assert_allclose((mapped @ mapped.T).numpy(), expected, rtol=1e-5, atol=1e-4)


def test_nystroem_with_every_clip_a_landmark_is_exact():
    data = clips(60)
    exact = fitted("kcca", data, dimension=3, landmarks=60)
    more = fitted("kcca", data, dimension=3, landmarks=1000)
    torch.testing.assert_close(exact.embed(data["audio"], "audio"), more.embed(data["audio"], "audio"))
