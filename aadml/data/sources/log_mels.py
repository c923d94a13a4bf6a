"""Log-mel spectrograms of sounds as a source, kept in memory and on disk as far as budgets allow."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from aadml.data.sources.loading import Loading
from aadml.data.sources.padding import Padded, pad
from aadml.data.sources.sound_batches import SoundBatch
from aadml.data.sources.waveforms import PackedWaveforms, Waveforms
from aadml.feature_extraction.frontends.log_mel import LogMelSettings, log_mel
from aadml.feature_extraction.media import Sound


@dataclass(frozen=True)
class LogMels:
    """The front end of a network over a source of sound: each sound by itself, so that a batch never changes it.

    Spectrograms of packed sound are not kept on disk: they are made about as fast as they would be read.

    Attributes:
        sounds: at the settings' rate.
        settings: of the network that will read the result.
        loading: what of the spectrograms is kept, and who makes them.
        cached: number of a file -> its spectrogram (t, bands), or its sound (s,) where the device makes spectrograms;
            shared by everything selected from one source.
        ahead: what was made ahead for the next batch; shared alike.
        cut: number of the first file that was found as long as is taken; shared alike.
    """

    sounds: Waveforms | PackedWaveforms
    settings: LogMelSettings
    loading: Loading = field(default_factory=Loading)
    cached: dict[int, Tensor] = field(default_factory=dict)
    ahead: dict[int, NDArray[Any] | None] = field(default_factory=dict)
    cut: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.sounds)

    @property
    def items(self) -> Tensor:
        """The file of each item (n,)."""
        return self.sounds.items

    @property
    def failures(self) -> dict[str, str]:
        """Path -> why it could not be decoded."""
        return self.sounds.failures

    def select(self, index: Tensor) -> "LogMels":
        """Return the source of the items `index` (m,) alone."""
        return replace(self, sounds=self.sounds.select(index))

    def elsewhere(self) -> "LogMels":
        """Return what makes the same spectrograms in another process."""
        none = torch.zeros(0, dtype=torch.int64)
        return LogMels(replace(self.sounds, items=none), self.settings, self.loading.elsewhere())

    def missing(self, index: Tensor) -> list[int]:
        """Name the files of the items `index` (b,) that are not in memory."""
        return [file for file in self.items[index].unique().tolist() if file not in self.cached]

    def decoded(self, files: Sequence[int]) -> list[NDArray[Any] | None]:
        """Read or make the spectrograms (t, bands) of the files of these numbers; None for one that cannot be had.

        Where the device makes them, these are the sounds (s,).
        """
        if self.loading.log_mel == "device":
            return [None if sound is None else sound.numpy() for sound in self.sounds.sounds(files)]
        disk = self.loading.disk if isinstance(self.sounds, Waveforms) else None
        keys = self._keys(files) if disk else [""] * len(files)
        found = {file: disk.get(key) if disk and key else None for file, key in zip(files, keys, strict=True)}
        wanted = [file for file in files if found[file] is None]
        for file, sound in zip(wanted, self.sounds.sounds(wanted), strict=True):
            found[file] = None if sound is None else log_mel(sound, self.settings).numpy()
        for file, key in zip(files, keys, strict=True):
            if disk and key and file in wanted and (made := found[file]) is not None:
                disk.add(key, made)
        return [found[file] for file in files]

    def batch(self, index: Tensor) -> Padded | SoundBatch:
        """Give the spectrograms of the items `index` (b,): (b, t, bands), or the sounds of which they are made."""
        missing = self.missing(index)
        wanted = [file for file in missing if file not in self.ahead]
        self.ahead.update(zip(wanted, self.decoded(wanted), strict=True))
        made = {file: None if (own := self.ahead[file]) is None else torch.from_numpy(own) for file in missing}
        self.ahead.clear()
        for file, spectrogram in made.items():
            self._keep(file, spectrogram)
            self._look_at_length(file, spectrogram)
        batch = pad([made[file] if file in made else self.cached[file] for file in self.items[index].tolist()])
        return SoundBatch(batch, self.settings) if self.loading.log_mel == "device" else batch

    def _look_at_length(self, file: int, made: Tensor | None) -> None:
        """Say so, of the first one alone, where a sound is so long that it was cut."""
        if made is None or self.cut or not isinstance(self.sounds, Waveforms):
            return
        samples = int(self.sounds.seconds * self.settings.sample_rate)
        if len(made) >= (samples if self.loading.log_mel == "device" else 1 + samples // self.settings.hop):
            self.cut.append(file)
            warnings.warn(
                f"{self.sounds.paths[file]}: lasts {self.sounds.seconds:g} s or more; of such sounds the first "
                f"{self.sounds.seconds:g} s are taken (no other is named)",
                stacklevel=2,
            )

    def _keys(self, files: Sequence[int]) -> list[str]:
        """Name what decides a spectrogram; empty for a file that cannot be read."""
        assert isinstance(self.sounds, Waveforms)
        decides = f"log-mel {Sound.edition} {torch.__version__} {self.settings!r} {self.sounds.seconds:g}"
        return [f"{decides} {content.hex()}" if content else "" for content in self.sounds.sums(files)]

    def _keep(self, file: int, spectrogram: Tensor | None) -> None:
        if spectrogram is None:
            return
        # spectrograms of one set are of like size, so their number times this one's tells what they hold
        held = (len(self.cached) + 1) * spectrogram.numel() * spectrogram.element_size()
        if held <= self.loading.memory:
            self.cached[file] = spectrogram


def log_mels(
    sounds: Waveforms | PackedWaveforms, settings: LogMelSettings, loading: Loading | None = None
) -> LogMels:  # fmt: skip
    """Lay the front end of a network over sounds, which are taken at its rate."""
    return LogMels(sounds.at(settings.sample_rate), settings, loading or Loading())


def at_most_once(items: Tensor) -> Tensor:
    """Give for each file the first item that is it: rows (f',) in the order of the files that occur in items (n,)."""
    _, place = items.unique(return_inverse=True)
    first = torch.full((int(place.max()) + 1 if len(place) else 0,), len(place), dtype=torch.int64)
    return first.scatter_reduce(0, place, torch.arange(len(place)), "amin")
