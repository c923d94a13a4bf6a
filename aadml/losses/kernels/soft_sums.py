"""Soft maxima that are 0 for rows without entries."""

import math

import torch
from torch import Tensor

from aadml.losses.kernels.likelihood import NOTHING, scaled
from aadml.losses.kernels.row_blocks import PER_BIT, exp_of_falls, without

BOUND = 60.0
"""Largest absolute exponent whose exponential needs no maximum of its row: sums of a billion do not overflow."""


def with_shares(
    values: Tensor, inside: Tensor | None, shift: float, weight: float, factor: float = 1.0, reach: float = math.inf
) -> tuple[Tensor, Tensor]:
    """Return `weight` times log(1 + sum of exp(factor x + shift)) of each row, and its derivatives.

    The derivatives are with respect to `factor` x.

    Args:
        values: x (a, c).
        inside: (a, c) ones for the entries of the sum, zeros for other entries; None: all entries.
        shift: added to every exponent.
        weight: factor of the result.
        factor: factor of the values.
        reach: upper bound of the absolute values; infinity if there is no known bound.

    Returns:
        Soft maxima (a,) and derivatives (a, c).
    """
    if not values.shape[1]:
        return values.new_zeros(len(values)), values
    reach *= abs(factor)
    if reach + abs(shift) <= BOUND:
        parts = torch.mul(values, factor * PER_BIT).exp2_()
        parts, unit = parts if inside is None else parts.mul_(inside), math.exp(shift)
        sums = torch.threshold(parts.sum(1, keepdim=True) * unit, NOTHING, 0.0)
        return weight * sums.log1p()[:, 0], scaled(parts, weight * unit / (1 + sums), 2 * reach)
    values = values if factor == 1 else factor * values
    values = values if inside is None else without(values, 1 - inside)
    peak = (values.amax(1, keepdim=True) + shift).clamp_min(0)
    parts = exp_of_falls(values - (peak - shift))
    above_one = torch.threshold(parts.sum(1, keepdim=True) + (-peak).expm1(), NOTHING, 0.0)
    return weight * (peak + above_one.log1p())[:, 0], scaled(parts, weight / (1 + above_one))
