"""Lines of the ledger: content, writer and reader."""

import hashlib
import json
import math
import os
import zlib
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Annotated, BinaryIO, NamedTuple, TypeVar

import numpy as np
from annotated_types import Interval, Len
from numpy.typing import NDArray

from aadml.feature_extraction.ground.errors import DamagedFileError
from aadml.feature_extraction.ground.json_values import parse_as

T = TypeVar("T")
Size = Annotated[int, Interval(ge=0, le=2**62)]
"""Number of bytes, rows or clips."""

NOTE = 0
"""Key of a line that is a note instead of a record."""

_CHECKED = 9  # start of the key, after the checksum and a space
_BODY = 26  # start of the JSON, after the key and a space


class Block(NamedTuple):
    """Location of the values of a record in the file of values.

    Attributes:
        offset: position in bytes.
        shape: (d,) for pooled features, or (t, d) for features over time.
        checksum: CRC-32 of the bytes.
    """

    offset: Size
    shape: Annotated[tuple[Size, ...], Len(1, 2)]
    checksum: Annotated[int, Interval(ge=0, lt=2**32)]

    def read(self, file: BinaryIO) -> NDArray[np.float32] | None:
        """Read the values, (d,) or (t, d); None if values are missing or do not match the checksum."""
        size = 4 * math.prod(self.shape)
        if size > os.fstat(file.fileno()).st_size:
            return None
        data = os.pread(file.fileno(), size, self.offset)
        if len(data) < size or zlib.crc32(data) != self.checksum:
            return None
        return np.frombuffer(data, dtype="<f4").reshape(self.shape).astype(np.float32)


@dataclass(frozen=True)
class Record:
    """Result for one modality of one clip.

    Attributes:
        id: id of the clip.
        modality: name of the modality.
        settings: fingerprint of all settings that determine the values.
        content: SHA-256 of the file, with the times of a segment; for a text, the first 64 bits of its SHA-256. "" for
            a file whose content could not be read when its SHA-256 was computed.
        stamp: for a file, the result of `stamp_of`, followed by the bytes of `str(segment)`; for a text, the result
            of `text_stamp`. Equal stamps mean equal content.
        reason: key of `REASONS`; "" for success.
        detail: description of the failure.
        warnings: warnings about an accepted clip.
        start: beginning of the sound or picture, in seconds after the beginning of the file or of the segment.
        seconds: duration in seconds.
        block: location of the values; None for a failure.
        fingerprint: fingerprint of sound or picture, in Base64; "" for a text or a failure, and in older ledgers.
        source: absolute path of the file, with the times of a segment; "" for a text. In older ledgers, the path may be
            relative or "".
        end: size of the file of values in bytes, including the values of the record.
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
    block: Block | None = None
    fingerprint: str = ""
    source: str = ""
    end: Size = field(default=0, compare=False)


def key_of(clip: str, modality: str, settings: str) -> int:
    """Compute the 64-bit key of a clip, modality and settings.

    Keys may collide, so readers also compare the fields of a record with the wanted clip, modality and settings.
    """
    name = "\0".join((clip, modality, settings)).encode("utf-8", errors="surrogatepass")
    return int.from_bytes(hashlib.blake2b(name, digest_size=8).digest()) or 1


def line_of(key: int, content: object) -> bytes:
    """Return the line for an instance of a dataclass; `key` is the key of a record, or `NOTE`."""
    text = json.dumps(vars(content), ensure_ascii=False, separators=(",", ":"), default=vars).encode(errors="replace")
    checked = b"%016x %s" % (key, text)
    return b"%08x %s\n" % (zlib.crc32(checked), checked)


def key_of_line(line: bytes) -> int | None:
    """Return the key of a line; None if the line is damaged."""
    if line[:_CHECKED] != b"%08x " % zlib.crc32(line[_CHECKED:-1]):
        return None
    try:
        return int(b"0x" + line[_CHECKED : _BODY - 1], 16)  # without a sign
    except ValueError:
        return None


def body_of(line: bytes) -> bytes:
    """Return the JSON text of a line; b"" if the line is damaged."""
    return b"" if key_of_line(line) is None else line[_BODY:]


def read_line(kind: type[T], line: bytes) -> T | None:
    """Return the content of a line as a dataclass; None if the line is damaged, or of another kind or version."""
    with suppress(DamagedFileError):
        return parse_as(kind, body_of(line), "the ledger")
    return None
