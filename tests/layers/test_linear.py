"""Linear layers that multiply in a shorter type: what is rounded, and whose gradients they give."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from aadml.layers.linear import Linear


def network_of(inputs, hidden, outputs):
    return nn.Sequential(Linear(inputs, hidden), nn.Tanh(), Linear(hidden, outputs), nn.Tanh())


def reduce(network, reduced):
    for module in network:
        if isinstance(module, Linear):
            module.reduced = reduced


def test_products_are_rounded_and_everything_else_is_float32():
    torch.manual_seed(0)
    network = network_of(7, 5, 4).eval()
    inputs = torch.randn(9, 7)
    expected = inputs
    for module in network:
        if isinstance(module, nn.Linear):
            rounded, weight = expected.bfloat16().double(), module.weight.bfloat16().double()
            expected = (rounded @ weight.T).float().bfloat16().float() + module.bias
        else:
            expected = module(expected)
    reduce(network, torch.bfloat16)
    outputs = network(inputs)
    assert outputs.dtype == torch.float32
    torch.testing.assert_close(outputs, expected, rtol=1e-2, atol=1e-3)  # the last bit may fall either way
    reduce(network, None)
    assert not torch.equal(outputs, network(inputs))


def test_gradients_are_those_of_float32_but_for_rounding():
    torch.manual_seed(0)
    network, inputs = network_of(30, 40, 20), torch.randn(50, 30)
    gradients = []
    for reduced in (None, torch.bfloat16):
        reduce(network, reduced)
        network.zero_grad()
        network(inputs).square().sum().backward()
        gradients.append([p.grad.clone() for p in network.parameters()])
    for exact, rounded in zip(*gradients, strict=True):
        assert rounded.dtype == torch.float32
        assert 0 < float((rounded - exact).norm() / exact.norm()) < 0.02


@pytest.mark.parametrize("asks", [True, False])
def test_gradients_are_those_of_linear_layers_in_bfloat16_to_the_bit(asks):
    torch.manual_seed(0)
    network, given = network_of(30, 40, 20), torch.randn(50, 30)
    reduce(network, torch.bfloat16)
    inputs = given.clone().requires_grad_(asks)
    network(inputs).square().sum().backward()
    gradients = [p.grad.clone() for p in network.parameters()] + [inputs.grad] * asks
    network.zero_grad()
    hidden = inputs = given.clone().requires_grad_(asks)
    for module in network:
        if isinstance(module, nn.Linear):
            product = functional.linear(hidden.bfloat16(), module.weight.bfloat16())
            hidden = product.float() + module.bias
        else:
            hidden = module(hidden)
    hidden.square().sum().backward()
    expected = [p.grad for p in network.parameters()] + [inputs.grad] * asks
    assert all(torch.equal(one, other) for one, other in zip(gradients, expected, strict=True))


def test_a_weight_that_asks_for_no_gradient_gets_none_and_its_inputs_do():
    layer, inputs = Linear(6, 4).requires_grad_(False), torch.randn(5, 6, requires_grad=True)
    layer.reduced = torch.bfloat16
    layer(inputs).sum().backward()
    assert layer.weight.grad is None
    torch.testing.assert_close(inputs.grad, layer.weight.sum(0).expand(5, 6), rtol=2e-2, atol=2e-2)
