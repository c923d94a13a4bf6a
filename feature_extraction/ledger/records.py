"""Lines of the ledger: content, writer and reader."""

import hashlib
import json
import zlib
from dataclasses import dataclass
from typing import Any

from aadml.feature_extraction.ground.json_values import JsonObject

NOTE = 0
"""Key of a line that is a note instead of a record."""

_CHECKED = 9  # start of the key, after the checksum and a space
_BODY = 26  # start of the JSON, after the key and a space


@dataclass(frozen=True)
class Block:
    """Location of the values of a record in the file of values.

    Attributes:
        offset: position in bytes.
        shape: (d,) for pooled features, or (t, d) for features over time.
        checksum: CRC-32 of the bytes.
    """

    offset: int
    shape: tuple[int, ...]
    checksum: int


@dataclass(frozen=True)
class Record:
    """Result for one modality of one clip.

    Attributes:
        id: id of the clip.
        modality: name of the modality.
        settings: fingerprint of all settings that determine the values.
        content: SHA-256 of the file.
        stamp: size, times and inode of the file when it was read; an equal stamp means equal content.
        reason: key of `REASONS`; "" for success.
        detail: description of the failure.
        warnings: remarks about an accepted clip.
        start: beginning of the sound or picture, in seconds after the beginning of the file.
        seconds: duration.
        block: location of the values; None for a failure.
        fingerprint: fingerprint of sound or picture, in Base64; "" for a failure, and in older ledgers.
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

    @property
    def content_of_line(self) -> JsonObject:
        """Content of the record's line, as JSON."""
        block = self.block
        place = None if block is None else [block.offset, block.shape, block.checksum]
        return {**vars(self), "block": place}


def key_of(clip: str, modality: str, settings: str) -> int:
    """Compute the 64-bit key of a clip, modality and settings; keys may collide, so callers compare the record too."""
    name = "\0".join((clip, modality, settings)).encode("utf-8", errors="surrogatepass")
    return int.from_bytes(hashlib.blake2b(name, digest_size=8).digest()) or 1


def line_of(key: int, content: JsonObject, end: int) -> bytes:
    """Return a line.

    Args:
        key: key of a record, or `NOTE`.
        content: values that JSON can represent.
        end: size of the file of values in bytes, including the values of this line.
    """
    text = json.dumps({**content, "end": end}, ensure_ascii=True, separators=(",", ":")).encode("ascii")
    checked = b"%016x %s" % (key, text)
    return b"%08x %s\n" % (zlib.crc32(checked), checked)


def key_of_line(line: bytes) -> int | None:
    """Return the key of a line; None if the line is damaged."""
    if line[:_CHECKED] != b"%08x " % zlib.crc32(line[_CHECKED:-1]):
        return None
    try:
        return int(line[_CHECKED : _BODY - 1], 16)
    except ValueError:
        return None


def content_of(line: bytes) -> dict[str, Any]:
    """Return the content of a line; {} if the line is damaged."""
    if key_of_line(line) is None:
        return {}
    try:
        content = json.loads(line[_BODY:])
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def record_of(line: bytes) -> Record | None:
    """Return the record of a line; None if the line is damaged or holds no record."""
    content = content_of(line)
    try:
        del content["end"]
        if content["block"] is not None:
            offset, shape, checksum = content["block"]
            content["block"] = Block(offset, tuple(shape), checksum)
        content["stamp"], content["warnings"] = tuple(content["stamp"]), tuple(content["warnings"])
        return Record(**content)
    except (ValueError, TypeError, KeyError):  # a record of another version
        return None
