"""The ledger of an extraction job: one line a finished piece of work, appended and never changed; no kill can lose it.

A line is `<CRC-32 in hex> <JSON>`. What a kill cut short is cut off at the next opening; what a disk damaged is
skipped, and that piece of work is done again. Only an index is held in memory.
"""

import base64
import fcntl
import json
import os
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from feature_extraction.ground.errors import InputError

_NAME = "ledger.jsonl"
_FLUSH_SECONDS = 5.0  # a power cut loses at most so much work; a kill loses none


@dataclass(frozen=True)
class Record:
    """What became of one modality of one clip.

    Attributes:
        id: of the clip.
        modality: `audio` or `visual`.
        settings: fingerprint of everything that decides the values.
        content: SHA-256 of the file.
        stamp: size, times and number of the file when it was read: where they are unchanged, so is the content.
        reason: empty, or why there is nothing.
        detail: what was seen.
        warnings: what is odd about a clip that was accepted.
        start: when the sound or the picture begins, in seconds after the beginning of the file.
        seconds: how long it lasts.
        values: pooled (d,), or (t, d) where descriptions over time are kept; None for a failure.
    """

    id: str
    modality: str
    settings: str
    content: str
    stamp: tuple[int, ...]
    reason: str = ""
    detail: str = ""
    warnings: tuple[str, ...] = ()
    start: float = 0.0
    seconds: float = 0.0
    values: NDArray[np.float32] | None = field(default=None, compare=False)


class Ledger:
    """The records of a job; of one piece of work the newest counts. `open_ledger` lets one process at a time in."""

    def __init__(self, file: Any, place: str) -> None:
        self._file = file
        self._place = place
        self._index: dict[tuple[str, str, str], tuple[int, int, Record]] = {}
        self._flushed = time.monotonic()
        self._end = 0
        self._read_all()

    def __len__(self) -> int:
        """Count the pieces of work on record."""
        return len(self._index)

    def find(self, clip: str, modality: str, settings: str) -> Record | None:
        """Give the newest record of a piece of work, without its values, or None."""
        entry = self._index.get((clip, modality, settings))
        return None if entry is None else entry[2]

    def values(self, clip: str, modality: str, settings: str) -> NDArray[np.float32]:
        """Read the values of a recorded piece of work: (d,) or (t, d)."""
        position, size, _ = self._index[clip, modality, settings]
        record = _parsed(os.pread(self._file.fileno(), size, position))
        if record is None or record.values is None:
            raise InputError(f"{self._place}: changed while it was in use; run the same command again")
        return record.values

    def append(self, record: Record) -> None:
        """Put a record at the end, whole or not at all.

        Raises:
            InputError: the disk is full or the file cannot be written; what was recorded before stays.
        """
        line = _line(record)
        try:
            written = 0
            while written < len(line):
                written += os.pwrite(self._file.fileno(), line[written:], self._end + written)
            self._remember(record, self._end, len(line))
            self._end += len(line)
            if time.monotonic() - self._flushed > _FLUSH_SECONDS:
                self.flush()
        except OSError as error:
            os.ftruncate(self._file.fileno(), self._end)
            message = f"{self._place}: cannot be written ({error.strerror}); {len(self)} results so far are safe: "
            raise InputError(message + "free some space and run the same command again") from error

    def flush(self) -> None:
        """Force what was appended to the disk."""
        os.fsync(self._file.fileno())
        self._flushed = time.monotonic()

    def _remember(self, record: Record, position: int, size: int) -> None:
        slim = replace(record, values=None)
        self._index[record.id, record.modality, record.settings] = (position, size, slim)

    def _read_all(self) -> None:
        for line in self._file:
            if not line.endswith(b"\n"):
                break  # a kill came in the middle of this line
            record = _parsed(line)
            if record is not None:
                self._remember(record, self._end, len(line))
            self._end += len(line)
        os.ftruncate(self._file.fileno(), self._end)


@contextmanager
def open_ledger(folder: Path) -> Iterator[Ledger]:
    """Open the ledger of a work folder, repair it, and keep other processes out meanwhile.

    Args:
        folder: the work folder; it is made if needed.

    Yields:
        The ledger.

    Raises:
        InputError: the folder cannot be written, or another process is at work in it.
    """
    place = folder / _NAME
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise InputError(
            f"{folder}: cannot be written ({error.strerror}); choose another place for the output"
        ) from error
    with os.fdopen(descriptor, "r+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise InputError(
                f"{place}: another extraction is writing it; wait for it, or name another output"
            ) from error
        ledger = Ledger(file, str(place))
        try:
            yield ledger
        finally:
            ledger.flush()


def _line(record: Record) -> bytes:
    content = dict(vars(record))
    if record.values is not None:
        data = np.ascontiguousarray(record.values, dtype="<f4")
        content["values"] = {"shape": data.shape, "data": base64.b64encode(data.tobytes()).decode("ascii")}
    text = json.dumps(content, ensure_ascii=True, separators=(",", ":")).encode("ascii")
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _parsed(line: bytes) -> Record | None:
    """Read a line; None where it is damaged."""
    checksum, _, text = line.rstrip(b"\n").partition(b" ")
    if checksum != b"%08x" % zlib.crc32(text):
        return None
    try:
        content = json.loads(text)
        values = content["values"]
        if values is not None:
            data = np.frombuffer(base64.b64decode(values["data"]), dtype="<f4")
            content["values"] = data.reshape(values["shape"]).astype(np.float32)
        content["stamp"], content["warnings"] = tuple(content["stamp"]), tuple(content["warnings"])
        return Record(**content)
    except (ValueError, TypeError, KeyError):  # whole, but written by another version of the program
        return None
