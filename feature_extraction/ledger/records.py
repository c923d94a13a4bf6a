"""What a line of the ledger says, and how it is written and read."""

import hashlib
import json
import zlib
from dataclasses import dataclass
from typing import Any

from aadml.feature_extraction.ground.json_values import JsonObject

NOTE = 0
"""The key of a line that is no record but a note about the job."""

_CHECKED = 9  # where a line's key begins, after the checksum and a space
_BODY = 26  # where its JSON begins, after the key and a space


@dataclass(frozen=True)
class Block:
    """Where the values of a record stand in the file of values.

    Attributes:
        offset: in bytes.
        shape: (d,) pooled, or (t, d) where descriptions over time are kept.
        checksum: CRC-32 of the bytes.
    """

    offset: int
    shape: tuple[int, ...]
    checksum: int


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
        block: where its values are; None for a failure.
        fingerprint: of its sound or picture, in base 64; empty for a failure, and in ledgers that have none.
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
        """What its line says."""
        block = self.block
        place = None if block is None else [block.offset, block.shape, block.checksum]
        return {**vars(self), "block": place}


def key_of(clip: str, modality: str, settings: str) -> int:
    """Give the 64 bits under which a piece of work is looked up; two may share them, so the record is looked at too."""
    name = "\0".join((clip, modality, settings)).encode("utf-8", errors="surrogatepass")
    return int.from_bytes(hashlib.blake2b(name, digest_size=8).digest()) or 1


def line_of(key: int, content: JsonObject, end: int) -> bytes:
    """Write a line.

    Args:
        key: of a record, or `NOTE`.
        content: JSON-able.
        end: how many bytes the file of values has when the line is written.
    """
    text = json.dumps({**content, "end": end}, ensure_ascii=True, separators=(",", ":")).encode("ascii")
    checked = b"%016x %s" % (key, text)
    return b"%08x %s\n" % (zlib.crc32(checked), checked)


def key_of_line(line: bytes) -> int | None:
    """Read the key of a line; None where it is damaged."""
    if line[:_CHECKED] != b"%08x " % zlib.crc32(line[_CHECKED:-1]):
        return None
    try:
        return int(line[_CHECKED : _BODY - 1], 16)
    except ValueError:
        return None


def content_of(line: bytes) -> dict[str, Any]:
    """Read what a line says; nothing where it is damaged."""
    if key_of_line(line) is None:
        return {}
    try:
        content = json.loads(line[_BODY:])
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def record_of(line: bytes) -> Record | None:
    """Read the record of a line; None where it is damaged or none."""
    content = content_of(line)
    try:
        del content["end"]
        if content["block"] is not None:
            offset, shape, checksum = content["block"]
            content["block"] = Block(offset, tuple(shape), checksum)
        content["stamp"], content["warnings"] = tuple(content["stamp"]), tuple(content["warnings"])
        return Record(**content)
    except (ValueError, TypeError, KeyError):  # whole, but written by another version of the program
        return None
