"""Linear layers whose products may have lower precision than their weights."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Linear(nn.Linear):
    """`nn.Linear` with an optional type of lower precision for the product.

    Attributes:
        reduced: type of the product and of its gradients; None for the type of the inputs. Weights and bias keep their
            type, which is also the type of the outputs.
    """

    reduced: torch.dtype | None = None

    def forward(self, inputs: Tensor) -> Tensor:
        """Return outputs (b, c): the products of inputs (b, d) and the weight, plus the bias."""
        if self.reduced is None:
            return super().forward(inputs)
        multiply: Callable[..., Tensor] = _Product.apply
        return multiply(inputs.to(self.reduced), self.weight.to(self.reduced)) + self.bias


class _Product(torch.autograd.Function):
    """`F.linear` without bias, with gradients bitwise equal to torch's.

    The gradient of the weights uses a copy of the outputs' gradient, transposed in memory: otherwise the product in
    bfloat16 takes 1.5 times as long.
    """

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor) -> Tensor:
        """Return the products (b, c) of inputs (b, d) and a weight (c, d)."""
        ctx.save_for_backward(inputs, weight)
        return F.linear(inputs, weight)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor | None]:
        """Return the gradients of inputs (b, d) and weight (c, d); a gradient that is not needed is None."""
        inputs, weight = ctx.saved_tensors
        of_inputs = gradients[0] @ weight if ctx.needs_input_grad[0] else None
        of_weight = gradients[0].T.contiguous() @ inputs if ctx.needs_input_grad[1] else None
        return of_inputs, of_weight
