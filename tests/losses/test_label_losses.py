import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from aadml.feature_extraction.ground.errors import InputError
from aadml.losses import LABEL_LOSSES
from aadml.losses.label_losses import ce, frobenius, mse, row_norm

EVERY = pytest.mark.parametrize("loss", LABEL_LOSSES.values(), ids=LABEL_LOSSES)


def batch(seed, count=6, classes=4, dtype=torch.float64):
    random = torch.Generator().manual_seed(seed)
    outputs = torch.randn(count, classes, generator=random, dtype=torch.float64).to(dtype)
    return outputs, torch.randint(classes, (count,), generator=random)


@given(seed=st.integers(0, 2**32 - 1), count=st.integers(1, 8))
def test_regressions_are_their_definitions(seed, count):
    outputs, labels = batch(seed, count)
    squares = [[(float(outputs[i, c]) - (1.0 if c == labels[i] else 0.0)) ** 2 for c in range(4)] for i in range(count)]
    assert row_norm(outputs, labels).item() == pytest.approx(sum(math.sqrt(sum(row)) for row in squares) / count, 1e-9)
    assert frobenius(outputs, labels).item() == pytest.approx(math.sqrt(sum(map(sum, squares))) / count, 1e-9)
    assert mse(outputs, labels).item() == pytest.approx(sum(map(sum, squares)) / count / 4, 1e-9)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("temperature", [0.5, 1.0])
def test_ce_is_torch_cross_entropy(temperature, smoothing):
    outputs, labels = batch(1)
    expected = F.cross_entropy(outputs / temperature, labels, label_smoothing=smoothing)
    assert ce(outputs, labels, temperature=temperature, label_smoothing=smoothing).item() == pytest.approx(
        expected.item()
    )


def test_known_values():
    outputs, labels = torch.tensor([[4.0, 4.0], [0.0, 1.0]]), torch.tensor([0, 1])
    assert row_norm(outputs, labels).item() == pytest.approx(2.5)
    assert frobenius(outputs, labels).item() == pytest.approx(2.5)
    assert mse(outputs, labels).item() == pytest.approx(25 / 4)
    assert mse(torch.tensor([[3.0]]), torch.tensor([0])).item() == pytest.approx(4)
    assert ce(torch.zeros(3, 8), torch.arange(3)).item() == pytest.approx(math.log(8))


@EVERY
def test_gradient_is_that_of_finite_differences(loss):
    outputs, labels = batch(2)
    assert torch.autograd.gradcheck(lambda x: loss(x, labels), outputs.requires_grad_())


@EVERY
def test_value_and_gradient_are_finite_at_the_labels_themselves(loss):
    labels = torch.arange(3)
    outputs = F.one_hot(labels).float().requires_grad_()
    value = loss(outputs, labels)
    value.backward()
    assert torch.isfinite(value)
    assert torch.isfinite(outputs.grad).all()


@EVERY
def test_an_empty_batch_costs_nothing(loss):
    assert loss(torch.empty(0, 3), torch.empty(0, dtype=torch.int64)).item() == 0


@EVERY
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_costed_in_float32(loss, dtype):
    outputs, labels = batch(3, dtype=dtype)
    value = loss(outputs, labels)
    assert value.dtype == torch.float32
    assert value.item() == pytest.approx(loss(outputs.double(), labels).item(), rel=1e-5)


def test_ce_refuses_a_temperature_that_is_not_positive():
    with pytest.raises(InputError, match="pass a temperature above 0"):
        ce(*batch(0), temperature=0.0)
