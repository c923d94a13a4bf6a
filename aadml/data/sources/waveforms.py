"""Sound as a source: decoded at the rate of a network, with at most a batch in memory."""

import hashlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from aadml.data.sources.loading import ItemSource
from aadml.data.sources.media_files import THREADS, MediaFiles, digest
from aadml.feature_extraction.foreign.hdf5 import open_hdf5
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.media import Sound
from aadml.feature_extraction.media.truncation import ending

PACKED_RATE = 32_000
_FIRST_MINUTE = Sound(PACKED_RATE, seconds=60.0)


@dataclass(frozen=True)
class Waveforms(MediaFiles):
    """Sound files as items, cut to a length.

    Attributes:
        inputs: sound to decode, at the rate of a network and with a length limit; the rest of a longer sound is not
            decoded.
    """

    inputs: Sound = _FIRST_MINUTE

    @property
    def seconds(self) -> float:
        """Length limit in seconds."""
        assert self.inputs.seconds is not None
        return self.inputs.seconds

    @property
    def longest(self) -> int:
        """Largest number of samples of a sound."""
        return int(self.seconds * self.inputs.sample_rate)

    def at(self, rate: int) -> "Waveforms":
        """Return the same sounds at `rate` Hz."""
        return replace(self, inputs=replace(self.inputs, sample_rate=rate))


@dataclass(frozen=True)
class PackedWaveforms(ItemSource):
    """Packed HDF5 of Mei et al.: `waveform` float32 (f, s) at 32 kHz, and optionally `audio_length` (f,) in samples.

    Methods that read rows raise InputError for an unreadable file.

    Reference: Mei et al., On metric learning for audio-text cross-modal retrieval, Interspeech 2022, https://arxiv.org/abs/2203.15537

    Attributes:
        path: the file.
        items: (n,) int64, the row of each item.
        failures: always empty; rows of a packed file are not decoded.
    """

    path: str
    items: Tensor
    failures: dict[str, str] = field(default_factory=dict)

    @property
    def paths(self) -> tuple[str, ...]:
        """Names of the rows, in place of paths."""
        return tuple(f"{self.path}#{row}" for row in range(int(self.items.max()) + 1 if len(self.items) else 0))

    def content(self) -> Iterator[bytes]:
        """Yield the SHA-256 of the packed file, then the rows of all items, as bytes for the hash of the data."""
        yield digest(self.path)
        yield self.items.numpy().tobytes()

    def at(self, rate: int) -> "PackedWaveforms":
        """Return this source, whose rate is fixed.

        Raises:
            InputError: the rate differs from that of the file.
        """
        if rate != PACKED_RATE:
            raise InputError(f"{self.path} is packed at {PACKED_RATE} Hz, but {rate} Hz are needed; use the wav files")
        return self

    def sums(self, files: Sequence[int]) -> list[bytes]:
        """Return the SHA-256 of the samples of the rows with indices `files`."""
        return [hashlib.sha256(sound.tobytes()).digest() for sound in self.decoded(files)]

    recordings = sums

    def batch(self, index: Tensor) -> list[NDArray[np.float32]]:
        """Return the samples (s,) of the items `index` (b,)."""
        return self.decoded(self.items[index].tolist())

    def decoded(self, files: Sequence[int]) -> list[NDArray[np.float32]]:
        """Return the samples (s,) of the rows with indices `files`.

        If the file has `audio_length`, the padding after this length is removed.
        """
        with open_hdf5(self.path) as file:
            waveforms, lengths = file["waveform"], file.get("audio_length")
            sounds = []
            for row in files:
                length = waveforms.shape[1] if lengths is None else min(int(lengths[row]), waveforms.shape[1])
                sounds.append(np.asarray(waveforms[row, : max(length, 1)], dtype=np.float32))
        return sounds


def unreadable(paths: Sequence[str]) -> dict[str, str]:
    """Check files without decoding them: existence, and a length that agrees with the header.

    Args:
        paths: paths of sound files.

    Returns:
        Defects of files that cannot be decoded, by path. Damage in the middle of a file is found only by decoding.
    """
    with ThreadPoolExecutor(THREADS) as pool:
        reasons = pool.map(_defect, paths)
        return {path: reason for path, reason in zip(paths, reasons, strict=True) if reason}


def _defect(path: str) -> str:
    file = Path(path)
    try:
        if not file.is_file():
            return "missing: the file does not exist"
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
