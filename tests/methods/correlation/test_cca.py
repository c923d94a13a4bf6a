"""CCA and cluster CCA against scikit-learn and their invariances."""

import numpy as np
import torch
from sklearn.cross_decomposition import CCA

from aadml.comparison.clips import Clips
from tests.methods.correlation.closed_forms import clips, correlations, fitted


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


def test_cluster_cca_with_all_weight_on_pairs_is_cca():
    data = clips()
    plain = fitted("cca", data, dimension=3).state()
    cluster = fitted("c-cca", data, dimension=3, pair_weight=1.0).state()
    assert all(torch.equal(plain[key], cluster[key]) for key in plain)
