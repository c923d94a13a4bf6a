"""One modality of the clips of a finished job, by numbers alone: a million clips are a few megabytes."""

import base64
from array import array
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.backbones import Extractor
from aadml.feature_extraction.ledger.ledger import Ledger
from aadml.feature_extraction.ledger.records import Block, Record
from aadml.feature_extraction.media.fingerprints import SIZE

_ABSENT = -1  # the offset of what is nowhere


class Track:
    """Where the values of one modality stand in the ledger, when they begin, and the fingerprints of the clips."""

    def __init__(self) -> None:
        self._blocks = array("q")  # offset, rows (0: pooled), width, checksum
        self._moments = array("d")  # start, seconds
        self._fingerprints = bytearray()

    def add(self, record: Record | None) -> None:
        """Enter the next clip; None: it lacks the modality."""
        if record is None:
            self._blocks.extend((_ABSENT, 0, 0, 0))
            self._moments.extend((0.0, 0.0))
            self._fingerprints += bytes(SIZE)
            return
        assert record.block is not None
        *rows, width = record.block.shape
        self._blocks.extend((record.block.offset, *(rows or (0,)), width, record.block.checksum))
        self._moments.extend((record.start, record.seconds))
        self._fingerprints += base64.b64decode(record.fingerprint) or bytes(SIZE)

    @property
    def fingerprints(self) -> NDArray[np.uint8]:
        """The fingerprint of each clip: (n, SIZE)."""
        return np.frombuffer(self._fingerprints, dtype=np.uint8).reshape(-1, SIZE)

    @property
    def present(self) -> NDArray[np.bool_]:
        """Whether each clip has the modality: (n,)."""
        return np.asarray(np.array(self._blocks, dtype=np.int64)[::4] != _ABSENT)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """How many rows each clip has."""
        return np.array(self._blocks, dtype=np.int64)[1::4]

    @property
    def width(self) -> int:
        """How wide the rows are; 0 where there are none."""
        return max(self._blocks[2::4], default=0)

    def descriptions(self, ledger: Ledger) -> Iterator[NDArray[np.float32]]:
        """Read the values of the clips that have any, one by one: (d,) or (t, d)."""
        blocks = self._blocks
        for first in range(0, len(blocks), 4):
            offset, rows, width, checksum = blocks[first : first + 4]
            if offset == _ABSENT:
                continue
            yield ledger.values(Block(offset, (rows, width) if rows else (width,), checksum))

    def times(self, one: Extractor) -> Iterator[NDArray[np.float64]]:
        """Say clip by clip when the rows begin: (t,)."""
        for rows, start, seconds in zip(self._blocks[1::4], self._moments[::2], self._moments[1::2], strict=True):
            if not rows:
                continue
            yield start + one.times(rows, seconds)
