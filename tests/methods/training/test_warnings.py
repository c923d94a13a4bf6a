import math

import pytest
import torch
from torch import nn

from aadml.methods.training.warnings import (
    collapse_warning,
    gradient_share,
    gradient_warning,
    saturation_warning,
    share_warning,
)


def test_one_point_is_a_collapse_and_a_cloud_is_not():
    assert "collapsed" in collapse_warning(torch.ones(5, 3))
    assert "collapsed" in collapse_warning(torch.zeros(5, 3))
    assert collapse_warning(torch.randn(5, 3)) is None
    assert collapse_warning(torch.randn(5, 3) * 1e-3) is None
    assert collapse_warning(torch.ones(1, 3)) is None
    assert "collapsed" in collapse_warning(torch.ones(2, 3))


@pytest.mark.parametrize("scale", [0.01, 1.0, 300.0])
def test_collapse_is_relative_to_the_norm_of_the_vectors(scale):
    random = torch.Generator().manual_seed(0)
    cloud = torch.randn(500, 4, generator=random)
    cloud = (cloud - cloud.mean(0)) / cloud.var(0).sum().sqrt()
    place = torch.tensor([0.6, 0.0, 0.8, 0.0])
    assert "collapsed" in collapse_warning(scale * (place + 0.7e-3 * cloud))
    assert collapse_warning(scale * (place + 1.4e-3 * cloud)) is None
    assert collapse_warning(scale * cloud) is None
    assert collapse_warning(1e-4 * cloud) is None
    assert "collapsed" in collapse_warning(1e-7 * cloud)


def test_saturation_warns_after_five_epochs_without_active_terms():
    assert "harder selection" in saturation_warning([0.5, 0, 0, 0, 0, 0])
    assert saturation_warning([0.0] * 4) is None
    assert saturation_warning([0.0] * 4 + [0.01]) is None
    assert saturation_warning([1e-4] * 5)
    assert saturation_warning([1.1e-4] + [0.0] * 4) is None


@pytest.mark.parametrize(("norm", "word"), [(0.0, "zero"), (math.nan, "not finite"), (math.inf, "not finite")])
def test_a_gradient_that_is_zero_or_not_finite_warns(norm, word):
    assert word in gradient_warning(norm)
    assert gradient_warning(1.0) is None


def test_the_share_of_a_gradient_is_its_norm_in_some_parameters_over_its_norm_in_all():
    x, y, z = (nn.Parameter(torch.ones(())) for _ in range(3))
    value = 3 * x + 4 * y
    assert gradient_share(value, [x], [y]) == pytest.approx(3 / 5)
    assert gradient_share(value, [x, y], []) == 1
    assert gradient_share(value, [z], [x, y]) == 0
    assert gradient_share((value * 0).sum(), [x], [y]) == 1
    value.backward()
    assert x.grad == 3, "the graph is retained, and no gradient is accumulated"


def test_a_negligible_share_warns_with_a_constant_message():
    assert share_warning(0.004) == share_warning(0.01)
    assert "less than 5% of the metric loss's gradient reaches the encoders" in share_warning(0.004)
    assert share_warning(0.9) is None
