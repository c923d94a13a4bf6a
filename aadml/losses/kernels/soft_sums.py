"""Soft maxima that are 0 for rows without entries."""

import torch
from torch import Tensor
from torch.nn import functional as F

from aadml.losses.kernels.likelihood import NOTHING, scaled
from aadml.losses.kernels.row_blocks import exp_of_falls, without


def with_shares(values: Tensor, outside: Tensor | None, shift: float, weight: float) -> tuple[Tensor, Tensor]:
    """Return `weight` times log(1 + sum of exp(x + shift)) of each row, and the derivatives with respect to x.

    Entries marked with ones in `outside` (a, c) are left out of the sum; None leaves out no entry.

    Returns:
        Soft maxima (a,) and derivatives (a, c).
    """
    if not values.shape[1]:
        return values.new_zeros(len(values)), values
    inside = values if outside is None else without(values, outside)
    peak = (inside.amax(1, keepdim=True) + shift).clamp_min(0)
    parts = exp_of_falls(torch.sub(inside, peak - shift, out=None if outside is None else inside))
    above_one = F.threshold(parts.sum(1, keepdim=True) + (-peak).expm1(), NOTHING, 0.0)
    return weight * (peak + above_one.log1p())[:, 0], scaled(parts, weight / (1 + above_one))
