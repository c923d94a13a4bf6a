"""A batch of sounds whose spectrograms are computed on a device."""

from dataclasses import dataclass

import torch
from torch import Tensor

from aadml.data.sources.padding import Padded, pad
from aadml.feature_extraction.frontends.log_mel import LogMelSettings
from aadml.feature_extraction.frontends.log_mel_by_torch import log_mel_by_torch


@dataclass(frozen=True)
class SoundBatch:
    """Sounds of a batch, and the front end of a network.

    Attributes:
        samples: (b, s), padded.
        settings: settings of the front end of the network.
    """

    samples: Padded
    settings: LogMelSettings

    def __len__(self) -> int:
        return len(self.samples)

    @property
    def present(self) -> Tensor:
        """Mask (b,), False for a missing sound."""
        return self.samples.present

    def to(self, device: torch.device) -> Padded:
        """Return the spectrograms (b, t, bands), computed on a device separately from each sound."""
        lengths, samples = self.samples.lengths, self.samples.to(device)
        spectrograms: list[Tensor | None] = [None] * len(self)
        for length in lengths[self.present].unique().tolist():
            rows = ((lengths == length) & self.present).nonzero()[:, 0].tolist()
            equal = log_mel_by_torch(samples.values[rows, :length], self.settings)
            for row, spectrogram in zip(rows, equal, strict=True):
                spectrograms[row] = spectrogram
        return pad(spectrograms).to(device)
