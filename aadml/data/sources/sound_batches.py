"""A batch of sounds of which a device makes the spectrograms."""

from dataclasses import dataclass

import torch
from torch import Tensor

from aadml.data.sources.padding import Padded, pad
from aadml.feature_extraction.frontends.log_mel import LogMelSettings
from aadml.feature_extraction.frontends.log_mel_by_torch import log_mel_by_torch


@dataclass(frozen=True)
class SoundBatch:
    """Sounds of a batch, and the front end of the network that will read them.

    Attributes:
        samples: (b, s), padded.
        settings: of the network.
    """

    samples: Padded
    settings: LogMelSettings

    def __len__(self) -> int:
        return len(self.samples)

    @property
    def present(self) -> Tensor:
        """Which sounds could be had (b,)."""
        return self.samples.present

    def to(self, device: torch.device) -> Padded:
        """Take the sounds to a device and make the spectrograms there: (b, t, bands); each sees its own sound alone."""
        lengths, samples = self.samples.lengths, self.samples.to(device)
        made: list[Tensor | None] = [None] * len(self)
        for length in lengths[self.present].unique().tolist():
            rows = ((lengths == length) & self.present).nonzero()[:, 0].tolist()
            spectrograms = log_mel_by_torch(samples.values[rows, :length], self.settings)
            for row, spectrogram in zip(rows, spectrograms, strict=True):
                made[row] = spectrogram
        return pad(made).to(device)
