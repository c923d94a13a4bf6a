"""Layers: which of them an activation and dropout follow, and what they compute, written out."""

from itertools import pairwise

import pytest
import torch
from torch import nn

from aadml.methods.correlation.vae_cca import VariationalLearner
from aadml.methods.method import Context
from aadml.methods.networks import layers


@pytest.mark.parametrize(
    ("sizes", "last", "followed"),
    [((4, 3), True, [True]), ((4, 3), False, [False]), ((4, 3, 2), True, [True, True]),
     ((4, 3, 2), False, [True, False]), ((4, 5, 3, 2), False, [True, True, False])],
)  # fmt: skip
def test_every_layer_but_perhaps_the_last_is_followed_by_activation_and_dropout(sizes, last, followed):
    torch.manual_seed(0)
    network = layers(sizes, activation="tanh", dropout=0.5, last=last)
    linear = [module for module in network if isinstance(module, nn.Linear)]
    assert [(one.in_features, one.out_features) for one in linear] == list(pairwise(sizes))
    assert len(network) == sum(1 + 2 * one for one in followed)
    values = expected = torch.randn(6, sizes[0])
    for one, activated in zip(linear, followed, strict=True):
        expected = expected @ one.weight.T + one.bias
        expected = expected.tanh() if activated else expected
    torch.testing.assert_close(network.eval()(values), expected)


def test_what_vae_cca_decodes_to_is_not_negative():
    torch.manual_seed(0)
    one = VariationalLearner(Context({"audio": 5, "visual": 7}, 3), hidden=16, inner=5, dimension=4)
    with torch.no_grad():
        hidden = one.own["audio"](torch.randn(50, 5))
    assert hidden.min() == 0 < hidden.max()
