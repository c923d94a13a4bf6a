"""Soft maxima that are 0 where there is nothing to be the largest of."""

from torch import Tensor

from aadml.comparison.pairwise import masked_logsumexp
from aadml.losses.kernels.likelihood import softplus


def log_one_plus_sum(values: Tensor, mask: Tensor) -> Tensor:
    """log(1 + sum of exp(x) over the entries of `mask`), by row: (a, c) -> (a,); 0 for a row without entries."""
    some = mask.any(1)
    return softplus(masked_logsumexp(values, mask).masked_fill(~some, 0)).masked_fill(~some, 0)
