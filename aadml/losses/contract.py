"""Contracts of losses and label losses."""

from typing import Annotated, Any, Protocol

from torch import Tensor

from aadml.comparison import Comparison, Terms
from aadml.feature_extraction.ground.contracts import Condition


class LossFunction(Protocol):
    """Pure function of a comparison, with the options of the loss as keyword-only arguments.

    A loss with parameters is an `nn.Module` class, whose instances are called with a comparison. The constructor
    receives the options of the loss. If the constructor has arguments named `classes`, `dimension`, `features` or
    `modalities`, it also receives these properties of the embeddings (see `Space`). Such an argument is positional, or
    keyword-only with the type `Size` or another type with the marker `NoOption`, because other keyword-only arguments
    are options.
    """

    def __call__(self, comparison: Comparison, /, **options: Any) -> Terms:
        """Compute the terms of every anchor of `comparison`; `options` are the options of the loss."""
        ...


class LabelLossFunction(Protocol):
    """Pure function of label-space vectors and labels, with the options of the loss as keyword-only arguments."""

    def __call__(
        self, outputs: Tensor, labels: Tensor, /, **options: Any
    ) -> Annotated[Tensor, Condition("a scalar Tensor", lambda loss: loss.ndim == 0)]:
        """Compute the loss of outputs (b, C) with labels (b,), a scalar."""
        ...
