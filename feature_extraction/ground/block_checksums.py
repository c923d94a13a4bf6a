"""Checksums of the blocks of a file, in a trailer after its content.

The trailer consists of:
- a checksum of 8 bytes, little endian, for each block of 64 KiB; the last block may be shorter
- the SHA-256 of these checksums together with the size of the content
- the size of the content in bytes, as an integer of 8 bytes, little endian
- the bytes `aadml checksums2`

A reader verifies the blocks that it reads. The checksum of a block is its 64-bit XXH3 hash (https://xxhash.com),
which is about as fast to compute as a copy in memory. Like every checksum that is stored with its data, the hash
detects damage but not forgery.
"""

import hashlib
import io
import os
import struct
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from aadml.feature_extraction.ground.errors import DamagedFileError

BLOCK = 1 << 16
"""Bytes of a block."""

_MAGIC = b"aadml checksums2"
_FOOTER = struct.Struct("<32sQ16s")  # SHA-256 of checksums and size, size of the content, magic
_CACHED = 64  # blocks of a reader
_PIECE = 64  # blocks that are read at a time


def checksums(data: bytes | memoryview) -> NDArray[np.uint64]:
    """Compute the checksums (m,) of the m blocks of `data`; the last block may be shorter than `BLOCK`."""
    view = memoryview(data)
    sums = [xxhash.xxh3_64_intdigest(view[start : start + BLOCK]) for start in range(0, len(view), BLOCK)]
    return np.array(sums, dtype=np.uint64)


def append_checksums(path: str | os.PathLike[str]) -> None:
    """Append the checksums of a file's content to the file.

    Raises:
        OSError: the file cannot be read or written.
    """
    with Path(path).open("r+b") as file:
        sums = bytearray()
        size = 0
        while data := file.read(_PIECE * BLOCK):
            size += len(data)
            sums += checksums(data).astype("<u8").tobytes()
        file.write(sums + _FOOTER.pack(_digest(bytes(sums), size), size, _MAGIC))


def _digest(sums: bytes, size: int) -> bytes:
    return hashlib.sha256(sums + struct.pack("<Q", size)).digest()


class CheckedReader(io.RawIOBase):
    """Reader of the content of a file with a trailer of checksums; each block is verified when it is read.

    Args:
        path: the file.

    Attributes:
        failure: message of the first failed verification; "" if no verification failed so far.

    Raises:
        DamagedFileError: the trailer is damaged. Every read of a damaged block raises this error as well.
        OSError: the file cannot be read.
    """

    failure = ""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__()
        self._place = os.fspath(path)
        self._file = io.FileIO(self._place)
        self._position = 0
        self._block = lru_cache(_CACHED)(self._read_block)
        try:
            self._size, self._sums = _read_trailer(self._file, self._place)
        except BaseException:
            self._file.close()
            raise

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Set the position of the next read; return the position in bytes from the start of the content."""
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        self._position = start + offset
        return self._position

    def close(self) -> None:
        """Close the file, and free the cached blocks."""
        self._file.close()
        self._block.cache_clear()
        super().close()

    def readinto(self, buffer: Any, /) -> int:
        """Read verified bytes into a buffer, and return their number."""
        view = memoryview(buffer).cast("B")
        view = view[: max(0, self._size - self._position)]
        filled = 0
        while filled < len(view):
            number, skipped = divmod(self._position, BLOCK)
            blocks = min((len(view) - filled) // BLOCK, _PIECE) if not skipped else 0
            if blocks:
                part = view[filled : filled + blocks * BLOCK]
                self._fill(part, number)
            else:
                block = self._block(number)[skipped : skipped + len(view) - filled]
                part = view[filled : filled + len(block)]
                part[:] = block
            filled += len(part)
            self._position += len(part)
        return filled

    def verify(self) -> None:
        """Read and verify all blocks; raise DamagedFileError for the first block with a wrong checksum."""
        buffer = bytearray(_PIECE * BLOCK)
        self.seek(0)
        while self.readinto(buffer):
            pass

    def _read_block(self, number: int) -> bytes:
        data = bytearray(min(BLOCK, self._size - number * BLOCK))
        self._fill(memoryview(data), number)
        return bytes(data)

    def _fill(self, view: memoryview, number: int) -> None:
        """Read blocks from block `number` on, and verify the blocks."""
        start, filled = number * BLOCK, 0
        while filled < len(view):
            read = os.preadv(self._file.fileno(), [view[filled:]], start + filled)
            if not read:
                self._fail(start + filled, len(view) - filled)
            filled += read
        differing = np.flatnonzero(checksums(view) != self._sums[number : number + -(-len(view) // BLOCK)])
        if len(differing):
            start += int(differing[0]) * BLOCK
            self._fail(start, min(BLOCK, self._size - start))

    def _fail(self, start: int, length: int) -> None:
        message = (
            f"{self._place} is damaged, as bytes {start:,} to {start + length - 1:,} do not match their "
            "checksum; restore the file from a copy, or create it again"
        )
        self.failure = self.failure or message
        raise DamagedFileError(message)


def has_checksums(path: str | os.PathLike[str]) -> bool:
    """Return whether a file ends with a trailer of checksums.

    Raises:
        OSError: the file cannot be read.
    """
    with Path(path).open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - len(_MAGIC)))
        return size >= _FOOTER.size and file.read() == _MAGIC


def _read_trailer(file: Any, place: str) -> tuple[int, NDArray[np.uint64]]:
    length = file.seek(0, os.SEEK_END)
    start = max(0, length - _FOOTER.size)
    digest, size, _ = _FOOTER.unpack(os.pread(file.fileno(), _FOOTER.size, start))
    length_of_sums = 8 * -(-size // BLOCK)
    sums = os.pread(file.fileno(), length_of_sums, size) if start - size == length_of_sums else b""
    if len(sums) != length_of_sums or _digest(sums, size) != digest:
        raise DamagedFileError(f"{place}: the checksums are damaged; restore the file from a copy, or create it again")
    return size, np.frombuffer(sums, dtype="<u8").astype(np.uint64)
