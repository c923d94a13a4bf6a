"""Sound as a source: decoded batch by batch, at the rate of a network, with at most a batch in memory."""

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aadml.data.sources.loading import ItemSource
from aadml.data.sources.media_files import MediaFiles, decode_or_warn, digest
from aadml.data.sources.padding import Padded, pad
from aadml.feature_extraction.foreign import open_hdf5
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.media import Sound
from aadml.feature_extraction.media.truncation import ending

PACKED_RATE = 32_000
_THREADS = min(8, os.cpu_count() or 1)


@dataclass(frozen=True)
class Waveforms(ItemSource):
    """Sound files, one for each item; a batch decodes a file of several items once.

    The items of a file that cannot be decoded are missing (`Padded.present` is False). The file causes one warning and
    an entry in `failures`.

    Attributes:
        paths: the f files.
        items: (n,) int64, the file of each item.
        rate: in Hz; all sound is resampled to it.
        seconds: longer sounds are cut to this length.
        failures: path -> reason why it could not be decoded; shared by all sources selected from one source.
        known: path -> SHA-256 of the file; shared like `failures`.
    """

    paths: tuple[str, ...]
    items: Tensor
    rate: int = PACKED_RATE
    seconds: float = 60.0
    failures: dict[str, str] = field(default_factory=dict)
    known: dict[str, bytes] = field(default_factory=dict)

    def content(self) -> Iterator[bytes]:
        """Yield the SHA-256 of every file in use and the file of each item, for the hash of the data."""
        yield from MediaFiles(self.paths, self.items).content()

    def sums(self, files: Sequence[int]) -> list[bytes]:
        """Return the SHA-256 of the files with indices `files`; empty for an unreadable file."""
        return MediaFiles(self.paths, self.items, known=self.known).sums(files)

    def at(self, rate: int) -> "Waveforms":
        """Return the same sounds at another rate."""
        return replace(self, rate=rate)

    def batch(self, index: Tensor) -> Padded:
        """Return the samples (b, s) of the items `index` (b,), in [-1, 1], padded with zeros."""
        return _padded(self.items[index], self.sounds)

    def sounds(self, files: Sequence[int]) -> list[Tensor | None]:
        """Return the samples (s,) of the files with indices `files`; None for a file that cannot be decoded."""
        with ThreadPoolExecutor(max(1, min(_THREADS, len(files)))) as pool:
            return list(pool.map(self._sound, [self.paths[i] for i in files]))

    def _sound(self, path: str) -> Tensor | None:
        samples = decode_or_warn(path, Sound(self.rate), 0.0, self.failures)
        return None if samples is None else torch.from_numpy(samples)[: int(self.seconds * self.rate)]


@dataclass(frozen=True)
class PackedWaveforms(ItemSource):
    """Sound from an HDF5 file of Mei et al.: `waveform` float32 (f, s) at 32 kHz, `audio_length` (f,).

    Attributes:
        path: the file.
        items: (n,) int64, the row of each item.
        rate: rate of the file, in Hz; a packed file cannot be resampled.
        failures: always empty; rows of a packed file are not decoded.
    """

    path: str
    items: Tensor
    rate: int = PACKED_RATE
    failures: dict[str, str] = field(default_factory=dict)

    @property
    def paths(self) -> tuple[str, ...]:
        """Names of the rows, in place of paths."""
        return tuple(f"{self.path}#{row}" for row in range(int(self.items.max()) + 1 if len(self.items) else 0))

    def content(self) -> Iterator[bytes]:
        """Yield the SHA-256 of the packed file and the row of each item, for the hash of the data."""
        yield digest(self.path)
        yield self.items.numpy().tobytes()

    def at(self, rate: int) -> "PackedWaveforms":
        """Return this source, whose rate is fixed.

        Raises:
            InputError: the rate differs from that of the file.
        """
        if rate != self.rate:
            raise InputError(f"{self.path}: is packed at {self.rate} Hz, but {rate} Hz are needed; use the wav files")
        return self

    def sums(self, files: Sequence[int]) -> list[bytes]:
        """Return the SHA-256 of the samples of the rows with indices `files`."""
        return [hashlib.sha256(sound.tobytes()).digest() for sound in self.decoded(files)]

    def decoded(self, files: Sequence[int]) -> list[NDArray[np.float32]]:
        """Return the rows with indices `files`, each (s,) without its padding."""
        return [sound.numpy() for sound in self.sounds(files)]

    def batch(self, index: Tensor) -> Padded:
        """Return the samples (b, s) of the items `index` (b,), padded with zeros."""
        return _padded(self.items[index], self.sounds)

    def sounds(self, files: Sequence[int]) -> list[Tensor]:
        """Return the rows with indices `files`, each (s,) without its padding."""
        with open_hdf5(self.path) as file:
            waveforms, lengths = file["waveform"], file.get("audio_length")
            sounds = []
            for row in files:
                length = waveforms.shape[1] if lengths is None else min(int(lengths[row]), waveforms.shape[1])
                sounds.append(torch.from_numpy(np.asarray(waveforms[row, : max(length, 1)], dtype=np.float32)))
        return sounds


def _padded(items: Tensor, sounds: Callable[[list[int]], Sequence[Tensor | None]]) -> Padded:
    files, place = items.unique(return_inverse=True)
    decoded = sounds(files.tolist())
    return pad([decoded[i] for i in place.tolist()])


def unreadable(paths: Sequence[str]) -> dict[str, str]:
    """Check files without decoding them: existence, and a length that agrees with the header.

    Args:
        paths: paths of sound files.

    Returns:
        Path -> defect, for files that cannot be decoded; damage in the middle is found only by decoding.
    """
    with ThreadPoolExecutor(_THREADS) as pool:
        reasons = pool.map(_defect, paths)
        return {path: reason for path, reason in zip(paths, reasons, strict=True) if reason}


def _defect(path: str) -> str:
    file = Path(path)
    try:
        if not file.is_file():
            return "missing: no such file"
        size = file.stat().st_size
        with file.open("rb") as stream:
            end = ending(stream)
        if size < 12:
            return "corrupt: the file is empty" if not size else f"corrupt: {size} bytes"
        if end.empty:
            return "corrupt: a wav file without samples"
        if end.missing and not end.tolerable:
            return f"corrupt: cut short, {end.missing} bytes are missing"
    except OSError as error:
        return f"missing: {error.strerror}"
    return ""
