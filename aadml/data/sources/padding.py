"""Padding of sequences of unequal length to one tensor."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from aadml.comparison.transfer import sent


@dataclass(frozen=True)
class Padded:
    """A batch of b sequences.

    Attributes:
        values: (b, t, ...), zero after the end of each sequence.
        lengths: (b,) int64; 1 for an empty or missing sequence.
        present: (b,) bool; False for a missing sequence, whose values are zeros.
    """

    values: Tensor
    lengths: Tensor
    present: Tensor

    def __len__(self) -> int:
        return len(self.lengths)

    def to(self, device: torch.device) -> "Padded":
        """Return the batch on a device."""
        return Padded(*(sent(tensor, device) for tensor in (self.values, self.lengths, self.present)))

    def mask(self) -> Tensor:
        """Return the mask (b, t) of the first `lengths` values of each sequence."""
        return torch.arange(self.values.shape[1], device=self.lengths.device)[None, :] < self.lengths[:, None]

    def select(self, index: Tensor) -> "Padded":
        """Return the sequences `index` (m,), in that order."""
        return Padded(self.values[index], self.lengths[index], self.present[index])


def pad(sequences: Sequence[Tensor | None]) -> Padded:
    """Pad sequences (t_i, ...) to the longest; None marks a missing sequence."""
    like = next((sequence for sequence in sequences if sequence is not None), torch.zeros(1))
    lengths = [1 if sequence is None else max(len(sequence), 1) for sequence in sequences]
    values = like.new_zeros((len(sequences), max(lengths, default=1), *like.shape[1:]))
    for row, sequence in enumerate(sequences):
        if sequence is not None:
            values[row, : len(sequence)] = sequence
    present = torch.tensor([sequence is not None for sequence in sequences], dtype=torch.bool)
    return Padded(values, torch.tensor(lengths, dtype=torch.int64), present)
