"""Media files as a source: sound and frames are decoded item by item, and damaged files are left out."""

import os
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any

from numpy.typing import NDArray
from torch import Tensor

from aadml.data.sources.array_cache import ArrayCache
from aadml.data.sources.loading import ItemSource
from aadml.feature_extraction.ground.file_content import file_digest
from aadml.feature_extraction.ground.segment import WHOLE, Segment
from aadml.feature_extraction.jobs.failures import ABSENT
from aadml.feature_extraction.media.decoding import decode
from aadml.feature_extraction.media.inputs import Frames, Limits, MediaFailure, Sound

THREADS = min(8, os.cpu_count() or 1)


@dataclass(frozen=True)
class MediaFiles(ItemSource):
    """Files of sound or video as items; a batch decodes each file once, also for several items.

    A file that cannot be decoded causes one warning and an entry in `failures`. An empty path is a missing file.

    Attributes:
        paths: the f files; a file of several segments is repeated.
        items: (n,) int64, the number in `paths` of each item's file.
        inputs: sound or frames to decode; None until a network defines them.
        shortest: minimum length in seconds; shorter files are left out.
        cache: cache on disk, which later runs reuse for files with the same content; None for no cache.
        failures: name of a file -> reason why the file could not be decoded; shared by all sources selected from
            one source.
        known: path -> SHA-256 of the file; shared like `failures`.
        segments: part of each file; empty for whole files.
    """

    paths: tuple[str, ...]
    items: Tensor
    inputs: Sound | Frames | None = None
    shortest: float = 0.0
    cache: ArrayCache | None = None
    failures: dict[str, str] = field(default_factory=dict)
    known: dict[str, bytes] = field(default_factory=dict)
    segments: tuple[Segment, ...] = ()

    def segment(self, file: int) -> Segment:
        """Return the segment that is decoded from a file."""
        return self.segments[file] if self.segments else WHOLE

    def name(self, file: int) -> str:
        """Return the path of a file, with the times of its segment."""
        return self.segment(file).named(self.paths[file])

    def lacks(self, file: int) -> bool:
        """Return whether a file has no sound, frames or path. Valid after decoding was tried."""
        return not self.paths[file] or self.failures.get(self.name(file), "").startswith(tuple(ABSENT.values()))

    def content(self) -> Iterator[bytes]:
        """Yield bytes for the hash of the data.

        The first values are the SHA-256 of each file or segment in use. The last value has, for each item, the
        position (int64) of the item's file or segment among these.
        """
        used, place = self.items.unique(return_inverse=True)
        yield from replace(self, known={}).sums(used.tolist())
        yield place.numpy().tobytes()

    def sums(self, files: Sequence[int]) -> list[bytes]:
        """Return a SHA-256 for each file or segment with an index in `files`; empty for an unreadable file.

        The SHA-256 of a segment is computed from the SHA-256 of the file and the times of the segment.
        """
        names = [str(self.segment(file)).encode() for file in files]
        sums = zip(self.recordings(files), names, strict=True)
        return [sha256(content + name).digest() if content and name else content for content, name in sums]

    def recordings(self, files: Sequence[int]) -> list[bytes]:
        """Return the SHA-256 of the whole files with indices `files`; empty for an unreadable file."""
        paths = [self.paths[i] for i in files]
        missing = [path for path in dict.fromkeys(paths) if path not in self.known]
        with ThreadPoolExecutor(THREADS) as pool:
            self.known.update(zip(missing, pool.map(digest, missing), strict=True))
        return [self.known[path] for path in paths]

    def batch(self, index: Tensor) -> list[NDArray[Any] | None]:
        """Return the decoded items `index` (b,), as `decoded` does."""
        return self.decoded(self.items[index].tolist())

    def decoded(self, files: Sequence[int]) -> list[NDArray[Any] | None]:
        """Return the decoded content of the files with indices `files`.

        Returns:
            Samples (s,) or frames (t, h, w, 3) of each file, or None for a file that cannot be decoded.
        """
        used = list(dict.fromkeys(files))
        keys = [self._key(content) for content in self.sums(used)] if self.cache is not None else [""] * len(used)
        with ThreadPoolExecutor(max(1, min(THREADS, len(used)))) as pool:
            arrays = dict(zip(used, pool.map(self._decoded, used, keys), strict=True))
        return [arrays[i] for i in files]

    def _decoded(self, file: int, key: str) -> NDArray[Any] | None:
        assert self.inputs is not None
        cache, name = self.cache if key else None, self.name(file)
        if name in self.failures or not self.paths[file]:
            return None
        if cache is not None and (cached := cache.get(key)) is not None:
            return cached
        try:
            limits = Limits(damaged="drop")
            values = decode(self.paths[file], self.inputs, limits, self.shortest, self.segment(file)).values
        except MediaFailure as failure:
            self.failures[name] = f"{failure.reason}: {failure.detail}"
            result = failure.detail if self.lacks(file) else f"the file was left out ({self.failures[name]})"
            warnings.warn(f"{name}: {result}", stacklevel=2)
            return None
        if cache is not None:
            cache.add(key, values)
        return values

    def _key(self, content: bytes) -> str:
        assert self.inputs is not None
        return f"{self.inputs.edition} {self.inputs!r} {self.shortest:g} {content.hex()}" if content else ""


def digest(path: str) -> bytes:
    """Return the SHA-256 of a file; empty for an unreadable file, whose decoding fails later."""
    try:
        return bytes.fromhex(file_digest(path))
    except OSError:
        return b""
