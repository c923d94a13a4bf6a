"""How long a media file says it is: one that was cut short often still decodes to its end without an error."""

from typing import IO

_BOX_HEADER = 8
_EBML = b"\x1a\x45\xdf\xa3"
_SEGMENT = b"\x18\x53\x80\x67"
_BOXES = {b"ftyp", b"moov", b"mdat", b"free", b"skip", b"wide", b"moof", b"styp", b"sidx", b"pnot", b"uuid", b"meta"}


def missing_bytes(file: IO[bytes]) -> int:
    """Count the bytes that a file's own structure announces beyond its end.

    Understood are the top-level boxes of ISO media (MP4, MOV, M4A) and the segment of Matroska and WebM. The position
    in the file is left at its beginning.

    Args:
        file: opened for reading bytes, seekable.

    Returns:
        How many bytes are missing; 0 where the file is whole, of another kind, or does not say.
    """
    size = file.seek(0, 2)
    file.seek(0)
    head = file.read(12)
    if head[4:8] in _BOXES:
        end = _end_of_boxes(file, size)
    elif head.startswith(_EBML):
        end = _end_of_segment(file)
    else:
        end = 0
    file.seek(0)
    return max(0, end - size)


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
