"""Parts shared by autograd functions."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch import Tensor

Gradients = tuple[Tensor | None, ...]


def applied(function: type[torch.autograd.Function], *arguments: Any) -> Any:
    """Return the result of an autograd function, whose `apply` has no type."""
    return function.apply(*arguments)


def output(values: Tensor) -> Tensor:
    """Return values as the output of an autograd function that changed them in place.

    Without the view, `torch.compile` of torch 2.11 sets the gradient to 0.
    """
    return values.view_as(values) if torch.compiler.is_compiling() else values


def once_differentiable(backward: Callable[..., Gradients]) -> Callable[..., Gradients]:
    """Make the gradients of an autograd function raise RuntimeError where they are differentiated.

    The function must save its differentiable inputs. The decorator of this name in torch returns gradients without a
    graph if the incoming gradient has no graph. The second derivative then lacks terms without an error. The decorator
    in torch also takes 3 microseconds where no second derivative is needed.
    """

    @wraps(backward)
    def run(ctx: Any, *above: Tensor) -> Gradients:
        if torch.compiler.is_compiling() or not torch.is_grad_enabled():
            return backward(ctx, *above)
        with torch.no_grad():
            gradients = backward(ctx, *above)
        sources = [tensor for tensor in (*above, *ctx.saved_tensors) if tensor is not None and tensor.requires_grad]
        return tuple(None if gradient is None else applied(_Once, gradient, *sources) for gradient in gradients)

    return run


class _Once(torch.autograd.Function):
    """Gradient that cannot be differentiated."""

    @staticmethod
    def forward(ctx: Any, gradient: Tensor, *sources: Tensor) -> Tensor:
        return gradient.view_as(gradient)

    @staticmethod
    def backward(ctx: Any, above: Tensor) -> Gradients:
        raise RuntimeError("a function of this step has no second derivative; call backward without create_graph")
