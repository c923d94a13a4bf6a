"""Sound as a source: decoded batch by batch, at the rate a network wants, never more than a batch in memory."""

import hashlib
import os
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aadml.data.sources.media_files import MediaFiles, digest
from aadml.data.sources.padding import Padded, pad
from aadml.feature_extraction.foreign import open_hdf5
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.media import Limits, MediaFailure, Sound, decode
from aadml.feature_extraction.media.truncation import ending

PACKED_RATE = 32_000
_THREADS = min(8, os.cpu_count() or 1)


@dataclass(frozen=True)
class Waveforms:
    """Sound files, one an item; several items may be the same file, which a batch then decodes once.

    A file that cannot be decoded costs its items (`Padded.present` is False there), is named in one warning, and is
    kept in `failures`.

    Attributes:
        paths: the f files.
        items: (n,) int64, the file of each item.
        rate: in Hz; all sound is resampled to it.
        seconds: what is longer is cut off after so many seconds.
        failures: path -> why it could not be decoded; shared by everything selected from one source.
        known: path -> SHA-256 of the file; shared as `failures`.
    """

    paths: tuple[str, ...]
    items: Tensor
    rate: int = PACKED_RATE
    seconds: float = 60.0
    failures: dict[str, str] = field(default_factory=dict)
    known: dict[str, bytes] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.items)

    def select(self, index: Tensor) -> "Waveforms":
        """Return the source of the items `index` (m,) alone."""
        return replace(self, items=self.items[index])

    def content(self) -> Iterator[bytes]:
        """Give the SHA-256 of every file in use and the file of each item, for the hash of the data."""
        yield from MediaFiles(self.paths, self.items).content()

    def sums(self, files: Sequence[int]) -> list[bytes]:
        """Give the SHA-256 of the files of these numbers; empty for one that cannot be read."""
        return MediaFiles(self.paths, self.items, known=self.known).sums(files)

    def at(self, rate: int) -> "Waveforms":
        """Return the same sounds at another rate."""
        return replace(self, rate=rate)

    def batch(self, index: Tensor) -> Padded:
        """Decode the items `index` (b,): samples (b, s) in [-1, 1], zeros behind their end."""
        files, place = self.items[index].unique(return_inverse=True)
        sounds = self.sounds(files.tolist())
        return pad([sounds[i] for i in place.tolist()])

    def sounds(self, files: Sequence[int]) -> list[Tensor | None]:
        """Decode the files of these numbers, each (s,); None for one that cannot be decoded."""
        with ThreadPoolExecutor(max(1, min(_THREADS, len(files)))) as pool:
            return list(pool.map(self._sound, [self.paths[i] for i in files]))

    def _sound(self, path: str) -> Tensor | None:
        if path in self.failures:
            return None
        try:
            samples = torch.from_numpy(decode(path, Sound(self.rate), Limits(), 0.0).values)
        except MediaFailure as failure:
            self.failures[path] = f"{failure.reason}: {failure.detail}"
            warnings.warn(f"{path}: left out, {self.failures[path]}", stacklevel=2)
            return None
        return samples[: int(self.seconds * self.rate)]


@dataclass(frozen=True)
class PackedWaveforms:
    """Sound from an HDF5 file as Mei et al. pack it: `waveform` float32 (f, s) at 32 kHz, `audio_length` (f,).

    Attributes:
        path: the file.
        items: (n,) int64, the row of each item.
        rate: in Hz; the file's own, resampling a packed file is refused.
        failures: always empty; rows of a packed file are not decoded.
    """

    path: str
    items: Tensor
    rate: int = PACKED_RATE
    failures: dict[str, str] = field(default_factory=dict)

    @property
    def paths(self) -> tuple[str, ...]:
        """Name the rows, for what caches by file."""
        return tuple(f"{self.path}#{row}" for row in range(int(self.items.max()) + 1 if len(self.items) else 0))

    def __len__(self) -> int:
        return len(self.items)

    def select(self, index: Tensor) -> "PackedWaveforms":
        """Return the source of the items `index` (m,) alone."""
        return replace(self, items=self.items[index])

    def content(self) -> Iterator[bytes]:
        """Give the SHA-256 of the packed file and the row of each item, for the hash of the data."""
        yield digest(self.path)
        yield self.items.numpy().tobytes()

    def at(self, rate: int) -> "PackedWaveforms":
        """Return itself at its own rate.

        Raises:
            InputError: another rate.
        """
        if rate != self.rate:
            raise InputError(f"{self.path}: is packed at {self.rate} Hz, {rate} Hz are wanted; use the wav files")
        return self

    def sums(self, files: Sequence[int]) -> list[bytes]:
        """Give the SHA-256 of the rows of these numbers, their samples alone."""
        return [hashlib.sha256(sound.tobytes()).digest() for sound in self.decoded(files)]

    def decoded(self, files: Sequence[int]) -> list[NDArray[np.float32]]:
        """Read the rows of these numbers, as `sounds` does."""
        return [sound.numpy() for sound in self.sounds(files)]

    def batch(self, index: Tensor) -> Padded:
        """Read the items `index` (b,): samples (b, s), zeros behind their end."""
        rows, place = self.items[index].unique(return_inverse=True)
        sounds = self.sounds(rows.tolist())
        return pad([sounds[i] for i in place.tolist()])

    def sounds(self, files: Sequence[int]) -> list[Tensor]:
        """Read the rows of these numbers, each (s,) without the zeros packed behind it."""
        with open_hdf5(self.path) as file:
            waveforms, lengths = file["waveform"], file.get("audio_length")
            found = []
            for row in files:
                length = waveforms.shape[1] if lengths is None else min(int(lengths[row]), waveforms.shape[1])
                found.append(torch.from_numpy(np.asarray(waveforms[row, : max(length, 1)], dtype=np.float32)))
        return found


def unreadable(paths: Sequence[str]) -> dict[str, str]:
    """Look at every file without decoding it: is it there, is there sound, does it end where its header says?

    Args:
        paths: of sound files.

    Returns:
        Path -> what is wrong, for those that will not decode; a file damaged in its middle is found only by decoding.
    """
    with ThreadPoolExecutor(_THREADS) as pool:
        found = list(pool.map(_glance, paths))
    return {path: reason for path, reason in zip(paths, found, strict=True) if reason}


def _glance(path: str) -> str:
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
