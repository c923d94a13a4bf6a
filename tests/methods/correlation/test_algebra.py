"""Linear algebra of the CCA family against its definitions."""

import pytest
import torch

from aadml.methods.correlation.algebra import centered, cluster_cross_covariance, inverse_square_root
from tests.methods.correlation.closed_forms import clips


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
