"""CCA, cluster CCA and kernel CCA against independent computations and their invariances."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.linalg
import torch
from scipy.spatial.distance import pdist
from sklearn.cross_decomposition import CCA
from sklearn.metrics.pairwise import rbf_kernel

from aadml.comparison.clips import Clips
from aadml.comparison.stored_rows import StoredRows
from aadml.feature_extraction.ground.errors import InputError
from aadml.methods import METHODS
from aadml.methods.correlation import covariances, kcca
from aadml.methods.correlation.algebra import canonical, centered, cluster_cross_covariance, inverse_square_root
from aadml.methods.method import Context
from aadml.methods.training.settings import Training

CLOSED = ["cca", "kcca", "c-cca"]


def clips(n=200, dimensions=(6, 9), classes=4, seed=0):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(n) % classes
    shared = torch.randn(n, 3, generator=generator) + 2 * torch.randn(classes, 3, generator=generator)[labels]
    features = {}
    for modality, d in zip(("audio", "visual"), dimensions, strict=True):
        mixing = torch.randn(3, d, generator=generator)
        features[modality] = shared @ mixing + 0.5 * torch.randn(n, d, generator=generator)
    return Clips(features, labels, tuple(map(str, range(n))), tuple("abcdefgh"[:classes]))


def fitted(name, data, **options):
    context = Context({m: data.dimension(m) for m in data.modalities}, len(data.class_names))
    method = METHODS[name](context, Training(), **options)
    method.fit(data, data.select(torch.arange(0)))
    return method


def correlations(method, data):
    first, second = (method.embed(data.matrix(m), m).double() for m in data.modalities)
    first, second = first - first.mean(0), second - second.mean(0)
    return (first * second).sum(0) / (first.norm(dim=0) * second.norm(dim=0))


def test_canonical_correlations_equal_scikit_learn():
    data = clips()
    ours = correlations(fitted("cca", data, dimension=3, ridge=0.0), data)
    peer = CCA(3, scale=False, max_iter=5000, tol=1e-12).fit(
        data.matrix("audio").numpy(), data.matrix("visual").numpy()
    )
    first, second = peer.transform(data.matrix("audio").numpy(), data.matrix("visual").numpy())
    expected = [np.corrcoef(first[:, i], second[:, i])[0, 1] for i in range(3)]
    np.testing.assert_allclose(ours.numpy(), expected, atol=1e-6)


def test_embeddings_of_the_training_clips_are_white():
    data = clips()
    method = fitted("cca", data, dimension=4, ridge=0.0)
    for modality in data.modalities:
        vectors = method.embed(data.matrix(modality), modality).double()
        covariance = torch.cov(vectors.T)
        torch.testing.assert_close(covariance, torch.eye(4, dtype=torch.float64), atol=1e-4, rtol=0)


def test_cca_does_not_change_under_invertible_linear_maps():
    data = clips()
    mixing = torch.randn(6, 6, generator=torch.Generator().manual_seed(1)) + 3 * torch.eye(6)
    mapped = Clips(
        {"audio": data.matrix("audio") @ mixing + 5, "visual": data["visual"]}, data.labels, data.ids, data.class_names
    )
    before = correlations(fitted("cca", data, dimension=5, ridge=0.0), data)
    after = correlations(fitted("cca", mapped, dimension=5, ridge=0.0), mapped)
    torch.testing.assert_close(before, after, atol=1e-5, rtol=0)


def test_the_cluster_cross_covariance_is_the_mean_over_all_pairs_of_a_class():
    data = clips(30)
    first, second = centered(data.matrix("audio"))[0], centered(data.matrix("visual"))[0]
    total, count = torch.zeros(6, 9, dtype=torch.float64), 0
    for i in range(30):
        for j in range(30):
            if data.labels[i] == data.labels[j]:
                total += torch.outer(first[i], second[j])
                count += 1
    torch.testing.assert_close(cluster_cross_covariance(first, second, data.labels), total / count)


@pytest.mark.parametrize("numbers", [1, 200, 1 << 25])
def test_sums_in_blocks_over_several_sets_are_those_over_all_clips(monkeypatch, numbers):
    monkeypatch.setattr(covariances, "_NUMBERS_AT_ONCE", numbers)
    data, names = clips(90), ("audio", "visual")
    stored = replace(data, features={m: StoredRows.of(f.numpy()) for m, f in data.features.items()})
    first, second = (data.matrix(name).double() for name in names)
    for one in (data, stored):
        parts = [one.select(torch.arange(70)), one.select(torch.arange(70, 90))]
        found = covariances.covariances_of(parts, names, 0.5)
        torch.testing.assert_close(found.first, first.T.cov() + 0.5 * torch.eye(6, dtype=torch.float64))
        torch.testing.assert_close(found.second, second.T.cov() + 0.5 * torch.eye(9, dtype=torch.float64))
        torch.testing.assert_close(found.cross, torch.cat([first, second], 1).T.cov()[:6, 6:])
        torch.testing.assert_close(found.means, (first.mean(0), second.mean(0)))
        clusters = cluster_cross_covariance(first - first.mean(0), second - second.mean(0), data.labels)
        torch.testing.assert_close(covariances.between_classes(parts, names, found.means), clusters)


def test_cluster_cca_with_all_weight_on_pairs_is_cca():
    data = clips()
    plain = fitted("cca", data, dimension=3).state()
    cluster = fitted("c-cca", data, dimension=3, pair_weight=1.0).state()
    assert all(torch.equal(plain[key], cluster[key]) for key in plain)


def test_exact_kernel_cca_solves_the_generalized_eigenproblem():
    data = clips(40)
    method = fitted("kcca", data, dimension=3, ridge=0.3)
    kernels = []
    for modality in data.modalities:
        mapped = method.projection.maps[modality](data.matrix(modality))
        mapped = mapped - mapped.mean(0)
        kernels.append((mapped @ mapped.T).numpy())
    first, second = kernels
    zero, jitter = np.zeros_like(first), 1e-9 * np.eye(40)
    left = np.block([[zero, first @ second], [second @ first, zero]])
    own = [0.7 * kernel @ kernel + 0.3 * kernel + jitter for kernel in kernels]
    right = np.block([[own[0], zero], [zero, own[1]]])
    expected = np.sort(scipy.linalg.eigh(left, right, eigvals_only=True))[::-1][:3]
    first, second = (centered(method.projection.maps[m](data.matrix(m)))[0] for m in data.modalities)
    solution = canonical(kcca._regularized(first, 0.3), kcca._regularized(second, 0.3), first.T @ second / 39, 3)
    np.testing.assert_allclose(solution.correlations.numpy(), expected, atol=1e-5)


def test_inner_products_of_what_kcca_maps_to_are_the_kernel_at_the_median_distance():
    data = clips(40)
    method = fitted("kcca", data, dimension=3)
    for modality in data.modalities:
        values = data.matrix(modality).double()
        distances = np.sort(pdist(values.numpy()))
        expected = rbf_kernel(values.numpy(), gamma=1 / distances[(len(distances) - 1) // 2] ** 2)
        mapped = method.projection.maps[modality](values)
        np.testing.assert_allclose((mapped @ mapped.T).numpy(), expected, atol=1e-5)


def test_of_the_polynomial_kernel_the_inner_products_are_its_cubes():
    data = clips(12, (6, 9))
    method = fitted("kcca", data, dimension=3, kernel="polynomial")
    for modality in data.modalities:
        values = data.matrix(modality).double()
        expected = [[(1 + float(x @ z) / values.shape[1]) ** 3 for z in values] for x in values]
        mapped = method.projection.maps[modality](values)
        np.testing.assert_allclose((mapped @ mapped.T).numpy(), expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("name", CLOSED)
def test_methods_of_vectors_refuse_what_is_made_batch_by_batch_and_modalities_they_do_not_know(name):
    method = fitted(name, clips(40), dimension=3)
    with pytest.raises(InputError, match="needs features as vectors"):
        method.embed(object(), "audio")
    with pytest.raises((InputError, KeyError), match="text"):
        method.embed(torch.zeros(2, 6), "text")


def test_nystroem_with_every_clip_a_landmark_is_exact():
    data = clips(60)
    exact = fitted("kcca", data, dimension=3, landmarks=60)
    more = fitted("kcca", data, dimension=3, landmarks=1000)
    torch.testing.assert_close(exact.embed(data["audio"], "audio"), more.embed(data["audio"], "audio"))


@pytest.mark.parametrize("name", CLOSED)
def test_of_one_clip_nothing_is_learned_and_nothing_breaks(name):
    method = fitted(name, clips(1), dimension=1)
    for modality, values in clips(5).features.items():
        assert torch.isfinite(method.embed(values, modality)).all()


@pytest.mark.parametrize("name", CLOSED)
@pytest.mark.parametrize(
    "kind", ["more dimensions than clips", "a constant column", "a repeated column", "an all-zero modality's column"]
)
def test_nothing_breaks_on_deficient_features(name, kind):
    data = clips(12, (40, 60)) if kind == "more dimensions than clips" else clips(60)
    audio = data.matrix("audio").clone()
    if kind == "a constant column":
        audio[:, 0] = 7.0
    elif kind == "a repeated column":
        audio[:, 1] = audio[:, 0]
    elif kind == "an all-zero modality's column":
        audio[:, 2] = 0.0
    data = Clips({"audio": audio, "visual": data["visual"]}, data.labels, data.ids, data.class_names)
    for ridge in (1e-4, 1e-12):
        method = fitted(name, data, dimension=3, ridge=ridge)
        for modality in data.modalities:
            assert torch.isfinite(method.embed(data[modality], modality)).all()


@pytest.mark.parametrize("name", CLOSED)
def test_too_many_dimensions_are_refused_with_what_is_possible(name):
    with pytest.raises(InputError, match="dimension"):
        fitted(name, clips(50), dimension=1000)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_what_the_inverse_square_root_leaves_out_does_not_depend_on_the_unit(scale):
    matrix = torch.diag(torch.tensor([1.0, 1e-3, 1e-14], dtype=torch.float64))
    expected = torch.diag(torch.tensor([1.0, 1e-3, 0.0], dtype=torch.float64))
    expected[:2, :2] = torch.diag(torch.tensor([1.0, 1e-3], dtype=torch.float64).rsqrt())
    torch.testing.assert_close(inverse_square_root(scale * matrix), expected / scale**0.5)


def test_the_inverse_square_root_is_one_and_a_pseudo_inverse_where_rank_lacks():
    values = torch.randn(8, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    full = values.T @ values
    root = inverse_square_root(full)
    torch.testing.assert_close(root @ full @ root, torch.eye(5, dtype=torch.float64))
    deficient = values[:3].T @ values[:3]
    root = inverse_square_root(deficient)
    projector = root @ deficient @ root
    torch.testing.assert_close(projector @ projector, projector)
    assert round(float(projector.trace())) == 3
