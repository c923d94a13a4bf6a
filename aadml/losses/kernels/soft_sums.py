"""Soft maxima that are 0 for rows without entries."""

from torch import Tensor
from torch.nn import functional as F

from aadml.comparison.pairwise import masked_logsumexp
from aadml.losses.kernels.likelihood import NOTHING, scaled, softplus
from aadml.losses.kernels.row_blocks import exp_of_falls, without


def log_one_plus_sum(values: Tensor, mask: Tensor) -> Tensor:
    """Return log(1 + sum of exp(x) over the entries of `mask`) by row, (a, c) -> (a,); 0 for a row without entries."""
    some = mask.any(1)
    return softplus(masked_logsumexp(values, mask).masked_fill(~some, 0)).masked_fill(~some, 0)


def with_shares(values: Tensor, outside: Tensor, shift: float, weight: float) -> tuple[Tensor, Tensor]:
    """Return weight log(1 + sum of exp(x + shift)) by row, and its derivatives with respect to x (a, c).

    Entries that `outside` (a, c) marks with ones are ignored.
    """
    if not values.shape[1]:
        return values.new_zeros(len(values)), values
    inside = without(values, outside)
    peak = (inside.amax(1, keepdim=True) + shift).clamp_min(0)
    parts = exp_of_falls(inside - (peak - shift))
    above_one = F.threshold(parts.sum(1, keepdim=True) + (-peak).expm1(), NOTHING, 0.0)
    return weight * (peak + above_one.log1p())[:, 0], scaled(parts, weight / (1 + above_one))
