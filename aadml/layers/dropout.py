"""Dropout with masks that are drawn fast."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from aadml.comparison.processes import group

LEVELS = 1 << 16
"""Number of values of a draw: each 64-bit number of the generator is split into four draws."""


class DropoutLayer(nn.Module):
    """Mean-preserving dropout: in training, a share of the units is zeroed and all other units are scaled up.

    In uncompiled code on a CPU, four entries of the mask are computed from each 64-bit random number. This takes a
    quarter of the time of `nn.Dropout`. The share of zeroed units is then rounded to a multiple of 1 / 65,536, and
    the scale matches the rounded share. In compiled code and on GPUs, the mask is torch's. Draws come from the
    global generator. Except in compiled code, draws depend neither on the number of threads nor on the number of
    processes that divide a batch.

    Args:
        share: share of the units that are zero in training, from 0 to less than 1.
    """

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share
        self._dropped = min(round(share * LEVELS), LEVELS - 1)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return `inputs` of any shape with zero and scaled entries in training, or unchanged in evaluation."""
        if not self.training or not self.share:
            return inputs
        if torch.compiler.is_compiling():
            return F.dropout(inputs, self.share)
        rows, local = group.drawn_rows(len(inputs))
        if inputs.device.type != "cpu":
            return inputs * F.dropout(inputs.new_ones(rows, *inputs.shape[1:]), self.share)[local]
        draws = _draws(rows * inputs.shape[1:].numel()).view(rows, *inputs.shape[1:])[local]
        mask = draws.float().ge_(self._dropped - LEVELS // 2)  # float32 takes a quarter of the time of bool
        return inputs * mask.to(inputs.dtype).mul_(LEVELS / (LEVELS - self._dropped))

    def extra_repr(self) -> str:
        """Return the text "share=..." for `repr`."""
        return f"share={self.share}"


def _draws(count: int) -> Tensor:
    """Draw `count` independent, uniform int16 numbers (count,)."""
    return torch.empty(-(-count // 4), dtype=torch.int64).random_(-(2**63), None).view(torch.int16)[:count]
