"""Media files as a source: sound and frames decoded item by item, as extraction decodes them."""

import hashlib
import os
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from torch import Tensor

from aadml.data.sources.array_cache import ArrayCache
from aadml.feature_extraction.media import Frames, Limits, MediaFailure, Sound, decode

_THREADS = min(8, os.cpu_count() or 1)


@dataclass(frozen=True)
class MediaFiles:
    """Files of sound or video, one an item; several items may be the same file, which a batch then decodes once.

    A file that cannot be decoded is named in one warning, and is kept in `failures`.

    Attributes:
        paths: the f files.
        items: (n,) int64, the file of each item.
        inputs: what is decoded of them; None until a network says it.
        shortest: what lasts less is left out, in seconds.
        cache: where what was decoded is kept, by the content of its file; None keeps nothing.
        failures: path -> why it could not be decoded; shared by everything selected from one source.
        known: path -> SHA-256 of the file; shared as `failures`.
    """

    paths: tuple[str, ...]
    items: Tensor
    inputs: Sound | Frames | None = None
    shortest: float = 0.0
    cache: ArrayCache | None = None
    failures: dict[str, str] = field(default_factory=dict)
    known: dict[str, bytes] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.items)

    def select(self, index: Tensor) -> "MediaFiles":
        """Return the source of the items `index` (m,) alone."""
        return replace(self, items=self.items[index])

    def content(self) -> Iterator[bytes]:
        """Give the SHA-256 of every file in use and the file of each item, for the hash of the data."""
        used, place = self.items.unique(return_inverse=True)
        yield from replace(self, known={}).sums(used.tolist())
        yield place.numpy().tobytes()

    def sums(self, files: Sequence[int]) -> list[bytes]:
        """Give the SHA-256 of the files of these numbers; empty for one that cannot be read."""
        paths = [self.paths[i] for i in files]
        missing = [path for path in dict.fromkeys(paths) if path not in self.known]
        with ThreadPoolExecutor(_THREADS) as pool:
            self.known.update(zip(missing, pool.map(digest, missing), strict=True))
        return [self.known[path] for path in paths]

    def batch(self, index: Tensor) -> list[NDArray[Any] | None]:
        """Decode the items `index` (b,)."""
        return self.decoded(self.items[index].tolist())

    def decoded(self, files: Sequence[int]) -> list[NDArray[Any] | None]:
        """Decode the files of these numbers: samples (s,) or frames (t, h, w, 3); None where that cannot be done."""
        once = list(dict.fromkeys(files))
        keys = [self._key(content) for content in self.sums(once)] if self.cache is not None else [""] * len(once)
        with ThreadPoolExecutor(max(1, min(_THREADS, len(once)))) as pool:
            found = dict(zip(once, pool.map(self._decoded, [self.paths[i] for i in once], keys), strict=True))
        return [found[i] for i in files]

    def _decoded(self, path: str, key: str) -> NDArray[Any] | None:
        if path in self.failures:
            return None
        there = self.cache.get(key) if self.cache is not None and key else None
        if there is not None:
            return there
        assert self.inputs is not None
        try:
            values = decode(path, self.inputs, Limits(), self.shortest).values
        except MediaFailure as failure:
            self.failures[path] = f"{failure.reason}: {failure.detail}"
            warnings.warn(f"{path}: left out, {self.failures[path]}", stacklevel=2)
            return None
        if self.cache is not None and key:
            self.cache.add(key, values)
        return values

    def _key(self, content: bytes) -> str:
        assert self.inputs is not None
        return f"{self.inputs.edition} {self.inputs!r} {self.shortest:g} {content.hex()}" if content else ""


def digest(path: str) -> bytes:
    """Take the SHA-256 of a file; nothing of one that cannot be read, which costs its clips when it is decoded."""
    try:
        with Path(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").digest()
    except OSError:
        return b""
