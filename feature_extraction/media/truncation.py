"""How long a media file says it is: one that was cut short often still decodes to its end without an error."""

from dataclasses import dataclass
from typing import IO

_BOX_HEADER = 8
_EBML = b"\x1a\x45\xdf\xa3"
_SEGMENT = b"\x18\x53\x80\x67"
_BOXES = {b"ftyp", b"moov", b"mdat", b"free", b"skip", b"wide", b"moof", b"styp", b"sidx", b"pnot", b"uuid", b"meta"}
_SLACK = 64  # bytes a writer may have miscounted by
_ENDLESS = 4096  # how near to 2 or 4 GiB the sizes are that stand for "not known" (FFmpeg's, SoX's and others')
_OGG_PAGE = 1 << 16  # a page is shorter than that
_LAST_PAGE = 4  # its flag


@dataclass(frozen=True)
class Ending:
    """How a file ends, by its own structure.

    Attributes:
        missing: bytes that are announced beyond the end; 0 where the file is whole, of another kind, or does not say.
        tolerable: whether what is there may be decoded all the same.
        open_ended: whether the last packet may be a short one, because the writer did not know the length.
        unmarked: whether the mark is absent that ends files of this kind.
        empty: whether there is nothing where the samples of a WAV should be.
    """

    missing: int = 0
    tolerable: bool = True
    open_ended: bool = False
    unmarked: bool = False
    empty: bool = False

    def remarks(self) -> tuple[str, ...]:
        """Say what is odd about the end, one line each."""
        missing = (f"announces {self.missing} bytes more than it holds",) if self.missing else ()
        return (*missing, *(("its last page is not marked as the end: it may be cut short",) if self.unmarked else ()))


def ending(file: IO[bytes]) -> Ending:
    """Compare what a file's own structure announces with its end.

    Understood are the top-level boxes of ISO media (MP4, MOV, M4A), the segment of Matroska and WebM, the chunks of
    WAV, the first chunk of AVI, and the last page of Ogg. The position in the file is left at its beginning.

    Args:
        file: opened for reading bytes, seekable.

    Returns:
        What was found; of a file of another kind, nothing.
    """
    size = file.seek(0, 2)
    file.seek(0)
    head = file.read(12)
    found = Ending()
    if head[4:8] in _BOXES:
        missing = max(0, _end_of_boxes(file, size) - size)
        found = Ending(missing, tolerable=missing <= _SLACK)
    elif head.startswith(_EBML):
        missing = max(0, _end_of_segment(file) - size)
        found = Ending(missing, tolerable=missing <= _SLACK)
    elif head[:4] in (b"RIFF", b"RF64") and head[8:12] == b"WAVE":
        found = _ending_of_wav(file, size)
    elif head[:4] == b"RIFF" and head[8:12] == b"AVI ":
        announced = int.from_bytes(head[4:8], "little")
        found = Ending(0 if _is_endless(announced) else max(0, announced + 8 - size))
    elif head.startswith(b"OggS"):
        found = Ending(unmarked=not _is_marked(file, size))
    file.seek(0)
    return found


def _end_of_boxes(file: IO[bytes], size: int) -> int:
    """Walk the boxes: each begins with its length in 4 bytes (1: in 8 bytes after the name; 0: up to the end)."""
    position = 0
    while position + _BOX_HEADER <= size:
        file.seek(position)
        header = file.read(16)
        if not header[4:8].isalnum():
            return 0  # not a box: what follows is padding, or nothing this walk understands
        length = int.from_bytes(header[:4])
        if length == 1:
            length = int.from_bytes(header[8:16])
        if length < _BOX_HEADER:
            return 0
        position += length
    return position


def _end_of_segment(file: IO[bytes]) -> int:
    """Read the length of the EBML header and of the segment after it."""
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
    """Read an EBML length: the leading zeros of the first byte tell how many bytes follow; all ones mean unknown."""
    first = file.read(1)
    if not first or not first[0]:
        return None
    extra = 8 - first[0].bit_length()
    value = int.from_bytes(bytes([first[0] & (0x7F >> extra)]) + file.read(extra))
    return None if value == (1 << (7 * (extra + 1))) - 1 else value


def _ending_of_wav(file: IO[bytes], size: int) -> Ending:
    """Walk the chunks up to the samples; a writer into a pipe leaves their size at nothing, or at the most there is."""
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
            return Ending(missing, tolerable=missing <= _SLACK, open_ended=0 < missing <= _SLACK)
        position += 8 + length + length % 2
    return Ending(empty=True)


def _is_endless(length: int) -> bool:
    return any(limit - _ENDLESS <= length <= limit for limit in (1 << 31, 1 << 32))


def _is_marked(file: IO[bytes], size: int) -> bool:
    """Look whether the last page of an Ogg file is whole and says that it is the last."""
    file.seek(max(0, size - 2 * _OGG_PAGE))
    tail = file.read()
    page = tail[tail.rfind(b"OggS") :]
    if len(page) < 27:
        return False
    table = page[27 : 27 + page[26]]
    return bool(page[5] & _LAST_PAGE) and len(page) >= 27 + page[26] + sum(table)
