"""Sequences of unequal length as one tensor."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor


@dataclass(frozen=True)
class Padded:
    """A batch of b sequences.

    Attributes:
        values: (b, t, ...), zero behind the end of each sequence.
        lengths: (b,) int64, at least 1.
        present: (b,) bool; False where a sequence could not be had and zeros stand in its place.
    """

    values: Tensor
    lengths: Tensor
    present: Tensor

    def __len__(self) -> int:
        return len(self.lengths)

    def to(self, device: torch.device) -> "Padded":
        """Take the batch to a device."""
        return Padded(*(sent(tensor, device) for tensor in (self.values, self.lengths, self.present)))

    def mask(self) -> Tensor:
        """Mark what is no padding: (b, t) bool."""
        return torch.arange(self.values.shape[1], device=self.lengths.device)[None, :] < self.lengths[:, None]

    def select(self, index: Tensor) -> "Padded":
        """Return the sequences `index`, in that order."""
        return replace(
            self, values=self.values[index], lengths=self.lengths[index], present=self.present[index]
        )  # fmt: skip


def sent(tensor: Tensor, device: torch.device) -> Tensor:
    """Take a tensor to a device; to a card from pinned memory, so that nobody waits for the copy."""
    if device.type == "cuda" and tensor.device.type == "cpu":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


def pad(sequences: Sequence[Tensor | None]) -> Padded:
    """Pad sequences (t_i, ...) to the longest; None stands for one that could not be had."""
    there = [sequence for sequence in sequences if sequence is not None]
    like = there[0] if there else torch.zeros(1)
    longest = max([1, *(len(sequence) for sequence in there)])
    values = like.new_zeros((len(sequences), longest, *like.shape[1:]))
    lengths = torch.ones(len(sequences), dtype=torch.int64)
    for row, sequence in enumerate(sequences):
        if sequence is not None:
            values[row, : len(sequence)] = sequence
            lengths[row] = max(len(sequence), 1)
    return Padded(values, lengths, torch.tensor([sequence is not None for sequence in sequences], dtype=torch.bool))
