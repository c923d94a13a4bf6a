"""Compact table of one modality of the clips of a finished job: about 300 bytes per clip."""

import base64
from array import array
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.backbones import Extractor
from aadml.feature_extraction.ledger.ledger import Ledger
from aadml.feature_extraction.ledger.records import Block, Record
from aadml.feature_extraction.media.fingerprints import SIZE

_ABSENT = -1  # offset of an absent modality


class Track:
    """Locations of values in the ledger, start times and fingerprints of the clips, for one modality."""

    def __init__(self) -> None:
        self._blocks = array("q")  # offset, rows (0: pooled), width, checksum
        self._moments = array("d")  # start, seconds
        self._fingerprints = bytearray()

    def add(self, record: Record | None) -> None:
        """Add the record of the next clip; a failure or None for a clip without the modality."""
        if record is None or record.block is None:
            self._blocks.extend((_ABSENT, 0, 0, 0))
            self._moments.extend((0.0, 0.0))
            self._fingerprints += bytes(SIZE)
            return
        *rows, width = record.block.shape
        self._blocks.extend((record.block.offset, *(rows or (0,)), width, record.block.checksum))
        self._moments.extend((record.start, record.seconds))
        self._fingerprints += base64.b64decode(record.fingerprint) or bytes(SIZE)

    @property
    def fingerprints(self) -> NDArray[np.uint8]:
        """Fingerprints of the clips, (n, SIZE)."""
        return np.frombuffer(self._fingerprints, dtype=np.uint8).reshape(-1, SIZE)

    @property
    def present(self) -> NDArray[np.bool_]:
        """Mask of the clips that have the modality, (n,)."""
        return np.asarray(np.array(self._blocks, dtype=np.int64)[::4] != _ABSENT)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of rows over time of each clip, (n,); 0 for pooled features, and for a clip without the modality."""
        return np.array(self._blocks, dtype=np.int64)[1::4]

    @property
    def shapes(self) -> set[tuple[bool, int]]:
        """Shapes of the values: whether they are over time, and their dimension; empty if no clip has the modality."""
        columns = zip(self._blocks[::4], self._blocks[1::4], self._blocks[2::4], strict=True)
        return {(rows > 0, width) for offset, rows, width in columns if offset != _ABSENT}

    def descriptions(self, ledger: Ledger) -> Iterator[NDArray[np.float32]]:
        """Yield the values, (d,) or (t, d), of each clip that has the modality.

        Raises:
            DamagedValues: values do not match their checksum.
        """
        blocks = self._blocks
        for first in range(0, len(blocks), 4):
            offset, rows, width, checksum = blocks[first : first + 4]
            if offset == _ABSENT:
                continue
            yield ledger.values(Block(offset, (rows, width) if rows else (width,), checksum))

    def times(self, extractor: Extractor) -> Iterator[NDArray[np.float64]]:
        """Yield the start times (t,) of the rows, for each clip with features over time.

        Times are in seconds after the beginning of the segment, or of the file of a clip without a segment.
        """
        for rows, start, seconds in zip(self._blocks[1::4], self._moments[::2], self._moments[1::2], strict=True):
            if rows:
                yield start + extractor.times(rows, seconds)
