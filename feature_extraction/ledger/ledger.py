"""Writer of a ledger and index of its records, for one process at a time."""

import fcntl
import os
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.ground.atomic import refuse_links, separate_hard_links
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.locks import WITHOUT_FLOCK, is_held, locked
from aadml.feature_extraction.ledger.notes import Note, NoteLine, line_of_note
from aadml.feature_extraction.ledger.positions import Positions
from aadml.feature_extraction.ledger.records import Block, Record, key_of, key_of_line, line_of, read_line

RECORDS, VALUES = "records.jsonl", "values.f32"
_LOCK = "lock.host"  # only where the file system has no flock
_FLUSH_SECONDS = 5.0  # work that a power failure may lose; a kill loses no work
_LINE = 1024  # bytes of the first read of a line


class DamagedValues(Exception):  # noqa: N818 - a finding about the disk
    """Error for values of a record that do not match their checksum."""


class Ledger:
    """Records of a job, opened by `open_ledger`. The newest record of a clip, modality and settings is used."""

    def __init__(self, records: BinaryIO, values: BinaryIO, place: str) -> None:
        self._records, self._values = records, values
        self._place = place
        self._positions = Positions()
        self._contents: Positions | None = None
        self._flushed = time.monotonic()
        self._end = self._values_end = 0
        self._read_all()

    def __len__(self) -> int:
        """Return the number of records, including replaced records."""
        return len(self._positions)

    def find(self, clip: str, modality: str, settings: str) -> Record | None:
        """Return the newest intact record of a clip, modality and settings; None if there is no such record."""
        for position in self._positions.of(key_of(clip, modality, settings)):
            record = read_line(Record, self._line(position))
            if record is not None and (record.id, record.modality, record.settings) == (clip, modality, settings):
                return record
        return None

    def find_content(self, content: str, modality: str, settings: str) -> Record | None:
        """Return the newest successful record with this content, modality and settings; None for no such record.

        The arguments are attributes of `Record`. The record may have any clip id. The first call builds an index.
        Records appended later are not found.
        """
        if self._contents is None:
            self._contents = Positions()
            for _, position in self._positions.all():
                record = read_line(Record, self._line(position))
                if record is not None and not record.reason:
                    self._contents.add(key_of(record.content, record.modality, record.settings), position)
        for position in self._contents.of(key_of(content, modality, settings)):
            record = read_line(Record, self._line(position))
            if record and (record.content, record.modality, record.settings) == (content, modality, settings):
                return record
        return None

    def values(self, block: Block) -> NDArray[np.float32]:
        """Read the values of a record: (d,) or (t, d).

        Raises:
            DamagedValues: the values do not match their checksum.
        """
        values = block.read(self._values)
        if values is None:
            raise DamagedValues
        return values

    def append(self, record: Record, values: NDArray[Any] | None = None) -> None:
        """Append a record and its values, completely or not at all.

        Args:
            record: the record. The line contains a new `end`, and a new `block` if `values` is not None.
            values: (d,) or (t, d); None for a failure, and for a record with the `block` of an earlier record.

        Raises:
            InputError: the disk is full or the file cannot be written. Earlier records are kept.
        """
        data = b""
        if values is not None:
            data = np.ascontiguousarray(values, dtype="<f4").tobytes()
            record = replace(record, block=Block(self._values_end, values.shape, zlib.crc32(data)))
        key = key_of(record.id, record.modality, record.settings)
        line = line_of(key, replace(record, end=self._values_end + len(data)))
        self._positions.add(key, self._append(line, data))

    def note(self, note: Note) -> None:
        """Append a note about the job.

        Raises:
            InputError: the disk is full or the file cannot be written. Earlier records are kept.
        """
        self._append(line_of_note(note, self._values_end), b"")

    def flush(self) -> None:
        """Flush all appended data to the disk.

        Raises:
            OSError: the disk cannot store the data.
        """
        for file in (self._values, self._records):
            os.fsync(file.fileno())
        self._flushed = time.monotonic()

    def forget_damaged(self) -> int:
        """Remove damaged records from the index, and return the number of removed records.

        The work of these records is done again.
        """
        before, positions, self._positions, self._contents = len(self), self._positions, Positions(), None
        for key, position in positions.all():
            record = read_line(Record, self._line(position))
            if record is not None and (record.block is None or record.block.read(self._values) is not None):
                self._positions.add(key, position)
        return before - len(self)

    def _append(self, line: bytes, data: bytes) -> int:
        """Write the values, then the line, and return the position of the line."""
        position = self._end
        try:
            _write_at(self._values, data, self._values_end)
            _write_at(self._records, line, self._end)
            self._end, self._values_end = self._end + len(line), self._values_end + len(data)
            if time.monotonic() - self._flushed > _FLUSH_SECONDS:
                self.flush()
        except OSError as error:
            os.ftruncate(self._records.fileno(), self._end)
            os.ftruncate(self._values.fileno(), self._values_end)
            raise InputError(
                f"{self._place} cannot be written ({error.strerror}; saved results: {len(self)}); "
                "correct the cause, such as a full disk, and run the same command again"
            ) from error
        return position

    def _line(self, position: int) -> bytes:
        length = _LINE
        while True:
            line, newline, _ = os.pread(self._records.fileno(), length, position).partition(b"\n")
            if newline or len(line) < length:
                return line + newline
            length *= 8

    def _read_all(self) -> None:
        """Index all records, without damaged lines and notes, and truncate unfinished writes in both files."""
        last = b""
        for line in self._records:
            if not line.endswith(b"\n"):
                break  # unfinished line of a killed process
            key = key_of_line(line)
            if key is not None:
                last = line
            if key:
                self._positions.add(key, self._end)
            self._end += len(line)
        os.ftruncate(self._records.fileno(), self._end)
        size, newest = os.fstat(self._values.fileno()).st_size, read_line(Record, last) or read_line(NoteLine, last)
        self._values_end = newest.end if newest else size if last else 0
        if size < self._values_end:
            self.forget_damaged()
            self._values_end = size
        os.ftruncate(self._values.fileno(), self._values_end)


@contextmanager
def open_ledger(folder: Path) -> Iterator[Ledger]:
    """Open the ledger of a work folder under a lock against other processes, and repair the ledger.

    Args:
        folder: the work folder, which is created if needed.

    Yields:
        The ledger.

    Raises:
        InputError: the folder cannot be written, is used by another process, or is or contains a symbolic link.
        OSError: the disk cannot store the data at the exit.
    """
    refuse_links(folder)
    with _locked(folder):
        separate_hard_links(folder / RECORDS, folder / VALUES)
    with _locked(folder) as records, _opened(folder / VALUES) as values:
        ledger = Ledger(records, values, str(folder / RECORDS))
        try:
            yield ledger
        finally:
            ledger.flush()


def is_in_use(records: Path) -> bool:
    """Return whether a process is writing a ledger.

    Args:
        records: path of the ledger's file `records.jsonl`.

    Raises:
        OSError: the file cannot be opened.
    """
    with records.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError as error:
            return error.errno not in WITHOUT_FLOCK or is_held(records.parent / _LOCK)
    return False


@contextmanager
def _locked(folder: Path) -> Iterator[BinaryIO]:
    busy = "another extraction is writing this file; wait until the extraction has finished, or choose another output"
    records = folder / RECORDS
    with _opened(records) as file, locked(file.fileno(), folder / _LOCK, f"{records}: {busy}"):
        yield file


def _opened(path: Path) -> BinaryIO:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666), "r+b")
    except OSError as error:
        raise InputError(f"{path} cannot be written ({error.strerror or error}); choose another output") from error


def _write_at(file: BinaryIO, data: bytes, position: int) -> None:
    written = 0
    while written < len(data):
        written += os.pwrite(file.fileno(), data[written:], position + written)
