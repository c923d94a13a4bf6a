"""Covariances of blocks over several sets of clips."""

from dataclasses import replace

import pytest
import torch

from aadml.comparison.stored_rows import StoredRows
from aadml.methods.correlation import covariances
from aadml.methods.correlation.algebra import cluster_cross_covariance
from tests.methods.correlation.closed_forms import clips


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
