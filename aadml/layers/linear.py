"""Linear layers whose products may be made in a shorter type than their weights have."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Linear(nn.Linear):
    """`nn.Linear`, whose product may be made in a shorter type.

    Attributes:
        reduced: the type of the product and of its gradients; None makes it in that of the inputs. The weights, the
            bias, and all that follows the product stay in float32.
    """

    reduced: torch.dtype | None = None

    def forward(self, inputs: Tensor) -> Tensor:
        """Return inputs (b, d) times the weight, plus the bias -> (b, c)."""
        if self.reduced is None:
            return super().forward(inputs)
        multiply: Callable[..., Tensor] = _Product.apply
        return multiply(inputs.to(self.reduced), self.weight.to(self.reduced)) + self.bias


class _Product(torch.autograd.Function):
    """`F.linear` without bias, whose gradients are those of torch to the bit.

    That of the weights is made of a copy of the outputs' gradient, transposed in memory: a product in bfloat16 that
    reads across its rows takes half as long again.
    """

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor) -> Tensor:
        """Multiply inputs (b, d) by a weight (c, d) -> (b, c)."""
        ctx.save_for_backward(inputs, weight)
        return F.linear(inputs, weight)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor | None]:
        """Give the gradients of the inputs and of the weight, where they are asked for."""
        inputs, weight = ctx.saved_tensors
        of_inputs = gradients[0] @ weight if ctx.needs_input_grad[0] else None
        of_weight = gradients[0].T.contiguous() @ inputs if ctx.needs_input_grad[1] else None
        return of_inputs, of_weight
