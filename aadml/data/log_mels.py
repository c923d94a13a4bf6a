"""Log-mel spectrograms of sounds as a source, kept in memory as far as a budget allows."""

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from aadml.data.padded import Padded, pad
from aadml.data.waveforms import PackedWaveforms, Waveforms
from feature_extraction.log_mel import LogMelSettings, log_mel


@dataclass(frozen=True)
class LogMels:
    """The front end of a network over a source of sound: each sound by itself, so that a batch never changes it.

    Attributes:
        sounds: at the settings' rate.
        settings: of the network that will read the result.
        budget: bytes of spectrograms kept; what does not fit is decoded again each time.
        kept: number of a file -> its spectrogram (t, bands); shared by everything selected from one source.
    """

    sounds: Waveforms | PackedWaveforms
    settings: LogMelSettings
    budget: int = 1 << 30
    kept: dict[int, Tensor] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.sounds)

    @property
    def items(self) -> Tensor:
        """The file of each item (n,)."""
        return self.sounds.items

    def select(self, index: Tensor) -> "LogMels":
        """Return the source of the items `index` (m,) alone."""
        return replace(self, sounds=self.sounds.select(index))

    def batch(self, index: Tensor) -> Padded:
        """Give the spectrograms of the items `index` (b,): (b, t, bands)."""
        files, place = self.items[index].unique(return_inverse=True)
        found: dict[int, Tensor | None] = {file: self.kept[file] for file in files.tolist() if file in self.kept}
        wanted = [file for file in files.tolist() if file not in found]
        for file, sound in zip(wanted, self.sounds.sounds(wanted), strict=True):
            found[file] = None if sound is None else log_mel(sound, self.settings)
            self._keep(file, found[file])
        return pad([found[file] for file in files[place].tolist()])

    def _keep(self, file: int, spectrogram: Tensor | None) -> None:
        if spectrogram is None:
            return
        # spectrograms of one set are of like size, so their number times this one's tells what they hold
        held = (len(self.kept) + 1) * spectrogram.numel() * spectrogram.element_size()
        if held <= self.budget:
            self.kept[file] = spectrogram


def log_mels(sounds: Waveforms | PackedWaveforms, settings: LogMelSettings, *, budget: int = 1 << 30) -> LogMels:
    """Lay the front end of a network over sounds, which are taken at its rate."""
    return LogMels(sounds.at(settings.sample_rate), settings, budget)


def at_most_once(items: Tensor) -> Tensor:
    """Give for each file the first item that is it: rows (f',) in the order of the files that occur in items (n,)."""
    _, place = items.unique(return_inverse=True)
    first = torch.full((int(place.max()) + 1 if len(place) else 0,), len(place), dtype=torch.int64)
    return first.scatter_reduce(0, place, torch.arange(len(place)), "amin")
