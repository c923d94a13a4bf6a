"""Log-mel spectrograms of sounds as a source, cached in memory and on disk within size limits."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from aadml.data.sources.loading import Loading
from aadml.data.sources.network_items import CachedItems
from aadml.data.sources.padding import Padded, pad
from aadml.data.sources.waveforms import PackedWaveforms, Waveforms
from aadml.feature_extraction.frontends.log_mel import LogMelSettings, log_mel
from aadml.feature_extraction.media import Sound


@dataclass(frozen=True)
class LogMels(CachedItems):
    """Spectrograms of sounds for a network. A spectrogram depends on one sound only, not on the batch.

    Spectrograms of packed sound are not cached on disk, because computing them takes about as long as reading them.

    Attributes:
        stored: sounds at the rate of `settings`.
        settings: settings of the front end of the network.
        cut: list with the number of the first file that reached the length limit, or an empty list; shared like
            `cached`.
    """

    stored: Waveforms | PackedWaveforms
    settings: LogMelSettings = field(kw_only=True)
    cut: list[int] = field(default_factory=list)

    def decoded(self, files: Sequence[int], /) -> Sequence[NDArray[Any] | None]:
        """Return the spectrograms of the files with indices `files`.

        Returns:
            Spectrogram (t, bands) of each file, or None for a file that cannot be decoded.
        """
        disk = self.loading.disk if isinstance(self.stored, Waveforms) else None
        key_of = self._keys(files) if disk else dict.fromkeys(files, "")
        arrays = {file: disk.get(key) if disk and key else None for file, key in key_of.items()}
        missing = [file for file in files if arrays[file] is None]
        for file, sound in zip(missing, self.stored.decoded(missing), strict=True):
            spectrogram = None if sound is None else log_mel(torch.from_numpy(sound), self.settings).numpy()
            arrays[file] = spectrogram
            if disk and key_of[file] and spectrogram is not None:
                disk.add(key_of[file], spectrogram)
        return [arrays[file] for file in files]

    def batch(self, index: Tensor) -> Padded:
        """Return the padded spectrograms (b, t, bands) of the items `index` (b,)."""
        tensors = {f: torch.from_numpy(array) for f, array in self.arrays(index).items() if array is not None}
        for file, tensor in tensors.items():
            self.keep(file, tensor, tensor.nbytes)
            self._check_length(file, len(tensor))
        return pad([tensors.get(file, self.cached.get(file)) for file in self.items[index].tolist()])

    def _check_length(self, file: int, length: int) -> None:
        """Warn once, at the first sound that reaches the length limit."""
        sounds = self.stored
        if not self.cut and isinstance(sounds, Waveforms) and length >= 1 + sounds.longest // self.settings.hop:
            self.cut.append(file)
            warnings.warn(
                f"{sounds.paths[file]}: lasts {sounds.seconds:g} s or more; only the first {sounds.seconds:g} s of "
                "such sounds are used (further sounds are not reported)",
                stacklevel=2,
            )

    def _keys(self, files: Sequence[int]) -> dict[int, str]:
        """Return the cache key of the spectrogram of each file; empty for an unreadable file."""
        assert isinstance(self.stored, Waveforms)
        fingerprint = f"log-mel {Sound.edition} {torch.__version__} {self.settings!r} {self.stored.seconds:g}"
        sums = zip(files, self.stored.sums(files), strict=True)
        return {file: f"{fingerprint} {content.hex()}" if content else "" for file, content in sums}


def log_mels(sounds: Waveforms | PackedWaveforms, settings: LogMelSettings, loading: Loading | None = None) -> LogMels:
    """Return the spectrograms of sounds as a source. The sounds are decoded at the rate of `settings`.

    Raises:
        InputError: packed sound has a rate other than that of `settings`.
    """
    return LogMels(sounds.at(settings.sample_rate), sounds.items, loading or Loading(), settings=settings)
