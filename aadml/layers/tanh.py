"""Hyperbolic tangent, with a faster form for networks whose products have lower precision."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn


class Tanh(nn.Tanh):
    """`nn.Tanh`, optionally computed from the logistic function σ: tanh x = 2 σ(2x) - 1.

    On a CPU this form takes a fifth of the time. The error is up to 2e-7 instead of 3e-8, while bfloat16 has a
    rounding error of 2e-3.

    Attributes:
        reduced: type of the products of the surrounding layers; None selects torch's function. In compiled code and
            on GPUs, torch's function is always used.
    """

    reduced: torch.dtype | None = None

    def forward(self, inputs: Tensor) -> Tensor:
        """Compute the hyperbolic tangent of `inputs` of any shape, in their type."""
        if self.reduced is None or inputs.device.type != "cpu" or torch.compiler.is_compiling():
            return super().forward(inputs)
        by_logistic: Callable[..., Tensor] = _ByLogistic.apply
        return by_logistic(inputs)


class _ByLogistic(torch.autograd.Function):
    """tanh x = 2 σ(2x) - 1, with the gradient computed from the function's values."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor) -> Tensor:
        """Compute tanh x for inputs of any shape."""
        values = (2 * inputs).sigmoid_().mul_(2).sub_(1)
        ctx.save_for_backward(values)
        return values

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        """Compute the gradient of the inputs: the incoming gradient times 1 - tanh²."""
        (values,) = ctx.saved_tensors
        of_inputs: Tensor = torch.ops.aten.tanh_backward(gradients[0], values)
        return of_inputs
