"""Contract of selections."""

from typing import Any, Protocol

import torch

from aadml.comparison import Comparison


class SelectionFunction(Protocol):
    """Function that selects anchors, positives and negatives of a comparison, from scores without gradient."""

    def __call__(self, comparison: Comparison, generator: torch.Generator, /, **options: Any) -> Comparison:
        """Return the comparison with only the selected anchors, positives and negatives; draws use `generator`."""
        ...
