"""Contract of selections."""

from typing import Any, Protocol

import torch

from aadml.comparison import Comparison


class SelectionFunction(Protocol):
    """Function that narrows the masks of a comparison, on detached scores."""

    def __call__(self, comparison: Comparison, generator: torch.Generator, /, **options: Any) -> Comparison:
        """Return the comparison with fewer anchors, positives or negatives; random draws use `generator`."""
        ...
