"""Whether a file is still the one that was read: by what the system says of it, and by all of its bytes."""

import functools
import hashlib
import os
import stat

_BLOCK = 2**20


def text_stamp(text: str) -> tuple[int, ...]:
    """Take what changes whenever a text does."""
    return (int.from_bytes(hashlib.sha256(text.encode("utf-8")).digest()[:8]),)


def stamp_of(path: str) -> tuple[int, ...] | None:
    """Take what changes whenever a file does: size, times and number; None where there is no such file."""
    try:
        status = os.stat(path)  # noqa: PTH116 - parsing paths would take longer than looking at the files
    except (OSError, ValueError):
        return None
    regular = stat.S_ISREG(status.st_mode)
    return (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino) if regular else ()


@functools.lru_cache(maxsize=4)  # sound and picture of a clip are mostly one file
def content_of(path: str, stamp: tuple[int, ...]) -> str:
    """Take the SHA-256 of a file; of one that cannot be read, the empty word: decoding will say what is wrong."""
    digest = hashlib.sha256()
    try:
        with open(path if stamp else os.devnull, "rb", buffering=0) as file:  # noqa: PTH123 - as above
            while block := file.read(_BLOCK):
                digest.update(block)
    except OSError:
        return ""
    return digest.hexdigest()
