"""Hyperbolic tangents by the logistic function: how far off they are, and whose gradients they give."""

import pytest
import torch

from aadml.layers.tanh import Tanh

INPUTS = torch.cat([torch.linspace(-12, 12, 4001), torch.tensor([0.0, 1e-30, -1e-8, 1e4, -1e4, torch.inf, -torch.inf])])


@pytest.fixture
def layer():
    layer = Tanh()
    layer.reduced = torch.bfloat16
    return layer


def test_values_are_off_by_a_few_last_digits(layer):
    values = layer(INPUTS)
    assert values.dtype == torch.float32
    assert values.abs().max() == 1
    assert 0 < float((values.double() - INPUTS.double().tanh()).abs().max()) < 2.5e-7


def test_without_a_shorter_type_they_are_those_of_torch():
    assert torch.equal(Tanh()(INPUTS), INPUTS.tanh())


def test_what_is_no_number_stays_none(layer):
    assert layer(torch.tensor([torch.nan])).isnan().all()


def test_gradients_are_those_of_torch(layer):
    inputs, weights = INPUTS[:4001].clone().requires_grad_(), torch.linspace(-2, 3, 4001)
    (expected,) = torch.autograd.grad((inputs.tanh() * weights).sum(), inputs)
    (found,) = torch.autograd.grad((layer(inputs) * weights).sum(), inputs)
    torch.testing.assert_close(found, expected, rtol=0, atol=2e-6)


def test_gradients_of_both_orders_are_those_of_the_values(layer):
    inputs = torch.linspace(-3, 3, 9, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(layer, (inputs,))
    assert torch.autograd.gradgradcheck(layer, (inputs,))


def test_inputs_are_left_as_they_are(layer):
    inputs = INPUTS.clone()
    with torch.no_grad():
        layer(inputs)
    assert torch.equal(inputs, INPUTS)
