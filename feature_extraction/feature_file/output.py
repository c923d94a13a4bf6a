"""The file under an HDF5 file that is being written: what goes wrong there is raised by us, not met inside HDF5.

HDF5 cannot close a file that it could not write: where a disk fills up, it fails again at every attempt, at last when
the process ends, and may crash there. So a write that fails is remembered, and the writes after it are dropped.
"""

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import h5py


class Output(io.RawIOBase):
    """A file that takes all writes, and knows the first that failed.

    Args:
        file: opened for reading and writing, without a buffer of its own.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.failure: OSError | None = None

    def readable(self) -> bool:
        """HDF5 reads back what it wrote."""
        return True

    def writable(self) -> bool:
        """It takes writes."""
        return True

    def seekable(self) -> bool:
        """HDF5 writes here and there."""
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a place."""
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        """Say where we are."""
        return self._file.tell()

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Read into a buffer; what was dropped reads as zeros."""
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        buffer[len(data) :] = bytes(len(buffer) - len(data))
        return len(buffer)

    def write(self, data: memoryview) -> int:  # type: ignore[override]
        """Write all of `data`, or drop it once a write has failed."""
        rest = memoryview(data).cast("B")
        size = len(rest)
        try:
            while rest and self.failure is None:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            self.failure = error
        return size

    def truncate(self, size: int | None = None) -> int:
        """Set the size."""
        try:
            return self._file.truncate(size) if self.failure is None else size or 0
        except OSError as error:
            self.failure = error
            return size or 0

    def flush(self) -> None:
        """Do nothing: there is no buffer."""


@contextmanager
def hdf5_output(path: Path) -> Iterator[h5py.File]:
    """Open a new HDF5 file at a path that exists and is empty.

    Raises:
        OSError: the first write that failed, once the file is closed.
    """
    with path.open("r+b", buffering=0) as file:
        output = Output(file)
        with h5py.File(output, "w", libver=("v108", "v110")) as content:
            yield content
        if output.failure is not None:
            raise output.failure
