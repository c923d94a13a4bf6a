"""Layers: which of them an activation and dropout follow, and what they compute, written out."""

from itertools import pairwise

import pytest
import torch
from torch import nn

from aadml.methods import METHODS
from aadml.methods.correlation.vae_cca import VariationalLearner
from aadml.methods.method import Context
from aadml.methods.networks import layers
from aadml.methods.training.settings import Training


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


@pytest.mark.parametrize("name", ["dscmr", "vae-cca", "acmr", "dcca", "c-dcca", "tnn-c-cca", "clip", "agah", "msnsca"])
def test_weights_start_as_those_of_linear_layers_of_torch(name):
    """Uniform within 1 / sqrt(inputs): the released networks in PyTorch start so; those in TensorFlow do not."""
    torch.manual_seed(0)
    built = METHODS[name](Context({"audio": 128, "visual": 1024}, 10), Training())
    linear = [module for module in built.learner.modules() if isinstance(module, nn.Linear)]
    assert linear
    for layer in linear:
        bound = layer.in_features**-0.5
        assert layer.weight.abs().max() <= bound
        assert layer.bias is None or layer.bias.abs().max() <= bound
        assert float(layer.weight.detach().std()) == pytest.approx(
            bound / 3**0.5, rel=0.02 + 4 / layer.weight.numel() ** 0.5
        )


@pytest.mark.parametrize(("name", "hidden"), [("dcca", 3), ("c-dcca", 3)])
def test_dcca_encodes_by_batch_norm_sigmoid_layers_and_a_linear_layer(name, hidden):
    torch.manual_seed(0)
    encoder = METHODS[name](Context({"audio": 12, "visual": 20}, 3), Training()).learner.encoders["audio"].eval()
    values = expected = torch.randn(6, 12)
    linear = [module for module in encoder.modules() if isinstance(module, nn.Linear)]
    expected = (expected - encoder[0].running_mean) / (encoder[0].running_var + encoder[0].eps).sqrt()
    for layer in linear[:-1]:
        expected = (expected @ layer.weight.T + layer.bias).sigmoid()
    expected = expected @ linear[-1].weight.T + linear[-1].bias
    assert len(linear) == hidden + 1
    torch.testing.assert_close(encoder(values), expected)
