"""Detection of truncated media files by their stated lengths. Many truncated files decode without an error."""

from dataclasses import dataclass
from typing import IO

_BOX_HEADER = 8
_EBML = b"\x1a\x45\xdf\xa3"
_SEGMENT = b"\x18\x53\x80\x67"
_BOXES = {b"ftyp", b"moov", b"mdat", b"free", b"skip", b"wide", b"moof", b"styp", b"sidx", b"pnot", b"uuid", b"meta"}
_HEADS = (
    *(_EBML, b"RIFF", b"RF64", b"FORM", b"OggS", b"fLaC", b"ID3", b"FLV", b"#!AMR", b".snd", b"GIF8", b"\x89PNG"),
    *(b"\xff\xd8\xff", b"\x30\x26\xb2\x75\x8e\x66\xcf\x11", b"\x00\x00\x01\xba", b"\x00\x00\x01\xb3", b"\x0bw"),
)
_SLACK = 64  # bytes by which a writer may miscount
_ENDLESS = 4096  # bytes below 2 or 4 GiB that mean an unknown size (FFmpeg, SoX and others)
_OGG_PAGE = 1 << 16  # upper bound of a page
_LAST_PAGE = 4  # flag of the last page


@dataclass(frozen=True)
class Ending:
    """Comparison of a file with the lengths that the file states.

    Attributes:
        missing: number of missing bytes; 0 if no bytes are missing or the file states no length.
        tolerable: whether missing bytes do not count as damage; true for a few bytes, or for any number of bytes in
            an AVI.
        open_ended: whether a short last packet is decoded; true for a WAV that is cut short or states no length.
        unmarked: whether the end mark of an Ogg file is absent.
        empty: whether a WAV has no samples.
        share: share of the file that is missing, for files whose length in seconds is known only from their size.
    """

    missing: int = 0
    tolerable: bool = True
    open_ended: bool = False
    unmarked: bool = False
    empty: bool = False
    share: float = 0.0

    @property
    def finding(self) -> str:
        """Description of the truncation; "" if no bytes are missing or the missing bytes are tolerable."""
        if self.tolerable or not self.missing:
            return ""
        return f"the file is cut short: {self.missing} bytes are missing at its end"

    def remarks(self) -> tuple[str, ...]:
        """Return the irregularities of the end, one line each."""
        if self.missing and self.tolerable:
            return (f"the file states {self.missing} bytes more than it contains",)
        return ("the last page is not marked as the end, so the file may be cut short",) if self.unmarked else ()


def ending(file: IO[bytes]) -> Ending:
    """Compare a file with the lengths that the file states.

    The lengths are those of the top-level boxes of ISO media (MP4, MOV, M4A), the segment of Matroska and WebM, the
    chunks of WAV, and the first chunk of AVI. In Ogg, the last page must have the end mark. Afterwards the
    file is positioned at its beginning.

    Args:
        file: seekable file, opened for reading bytes.
    """
    size = file.seek(0, 2)
    file.seek(0)
    try:
        return _ending(file, size, file.read(12))
    finally:
        file.seek(0)


def is_media(file: IO[bytes]) -> bool:
    """Return whether a file begins like a media file. A damaged file may still have its original beginning."""
    file.seek(0)
    head = file.read(189)
    return (
        head.startswith(_HEADS)
        or head[4:8] in _BOXES
        or (head[:1] == b"\xff" and head[1:2] > b"\xe0" and head[:2] != b"\xff\xfe")  # a frame of MPEG sound, not text
        or head[::188] == b"GG"  # packets of a transport stream
    )


def _ending(file: IO[bytes], size: int, head: bytes) -> Ending:
    if head[4:8] in _BOXES or head.startswith(_EBML):
        end = _end_of_boxes(file, size) if head[4:8] in _BOXES else _end_of_segment(file)
        return Ending(max(0, end - size), tolerable=end - size <= _SLACK)
    if head[:4] in (b"RIFF", b"RF64") and head[8:12] == b"WAVE":
        return _ending_of_wav(file, size)
    if head[:4] == b"RIFF" and head[8:12] == b"AVI ":
        length = int.from_bytes(head[4:8], "little")
        missing = 0 if _is_endless(length) else max(0, length + 8 - size)
        return Ending(missing, share=missing / (missing + size))
    return Ending(unmarked=head.startswith(b"OggS") and not _is_marked(file, size))


def _end_of_boxes(file: IO[bytes], size: int) -> int:
    """Return the sum of the lengths of the boxes; 0 for an unstated last length or an unknown structure.

    The first 4 bytes of a box are its length. The value 1 refers to the 8 bytes after the name. For the value 0, the
    box extends to the end of the file.
    """
    position = 0
    while position + _BOX_HEADER <= size:
        file.seek(position)
        header = file.read(16)
        if not header[4:8].isalnum():
            return 0  # not a box: padding, or an unknown structure
        length = int.from_bytes(header[:4])
        if length == 1:
            length = int.from_bytes(header[8:16])
        if length < _BOX_HEADER:
            return 0
        position += length
    return position


def _end_of_segment(file: IO[bytes]) -> int:
    """Return the offset of the end of the first segment; 0 without a segment or with an unknown EBML length."""
    file.seek(len(_EBML))
    header = _variable_length(file)
    if header is None:
        return 0
    file.seek(header, 1)
    if file.read(len(_SEGMENT)) != _SEGMENT:
        return 0
    segment = _variable_length(file)
    return 0 if segment is None else file.tell() + segment


def _variable_length(file: IO[bytes]) -> int | None:
    """Read an EBML length; None if the length is invalid or unknown (all ones).

    The number of leading zero bits of the first byte is the number of the following bytes.
    """
    first = file.read(1)
    if not first or not first[0]:
        return None
    extra = 8 - first[0].bit_length()
    value = int.from_bytes(bytes([first[0] & (0x7F >> extra)]) + file.read(extra))
    return None if value == (1 << (7 * (extra + 1))) - 1 else value


def _ending_of_wav(file: IO[bytes], size: int) -> Ending:
    """Compare the stated size of the chunk of samples of a WAV with the end of the file.

    A program that writes a WAV to a pipe sets this size to 0 or to the maximum.
    """
    position, long_size = 12, 0
    while position + 8 <= size:
        file.seek(position)
        header = file.read(24)
        length = int.from_bytes(header[4:8], "little")
        if header[:4] == b"ds64":
            long_size = int.from_bytes(header[16:24], "little")
        if header[:4] == b"data":
            held = size - position - 8
            if length == 0xFFFFFFFF and 0 < long_size < 1 << 62:
                length = long_size
            if not held:
                return Ending(length, tolerable=False, empty=True)
            if length == 0 or (length > held and _is_endless(length)):
                return Ending(open_ended=True)
            missing = max(0, length - held)
            return Ending(missing, missing <= _SLACK, open_ended=missing > 0, share=missing / (missing + held))
        position += 8 + length + length % 2
    return Ending(empty=True)


def _is_endless(length: int) -> bool:
    return any(limit - _ENDLESS <= length <= limit for limit in (1 << 31, 1 << 32))


def _is_marked(file: IO[bytes], size: int) -> bool:
    """Return whether the last page of an Ogg file is complete and marked as the last."""
    file.seek(max(0, size - 2 * _OGG_PAGE))
    tail = file.read()
    page = tail[tail.rfind(b"OggS") :]
    if len(page) < 27:
        return False
    table = page[27 : 27 + page[26]]
    return bool(page[5] & _LAST_PAGE) and len(page) >= 27 + page[26] + sum(table)
