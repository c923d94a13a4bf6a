"""Detection of changed files: by a stamp of size, times and inode, and by the SHA-256 of the content."""

import errno
import functools
import hashlib
import os
import stat
from pathlib import Path

from aadml.feature_extraction.ground.errors import InputError

_KINDS = {
    stat.S_IFREG: "regular file",
    stat.S_IFDIR: "folder",
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
    stat.S_IFIFO: "pipe",
    stat.S_IFSOCK: "socket",
}


def file_digest(path: str | os.PathLike[str], kind: str = "sha256") -> str:
    """Compute the hexadecimal digest of a file; `kind` is the name of an algorithm in `hashlib`.

    Raises:
        OSError: the file cannot be read.
    """
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, kind).hexdigest()


def read_bytes(path: Path) -> bytes:
    """Return the content of a regular file.

    Raises:
        OSError: the file cannot be read, or is a device, a pipe or a socket, whose end might never be reached.
    """
    kind = file_kind(path.stat())
    if kind in ("device", "pipe", "socket"):
        raise OSError(errno.EINVAL, f"it is a {kind}", os.fspath(path))
    return path.read_bytes()


def sha256(path: Path) -> str:
    """Compute the hexadecimal SHA-256 of a file, or of the relative paths and SHA-256 digests of all files in a folder.

    Raises:
        OSError: a file cannot be read.
    """
    if path.is_file():
        return file_digest(path)
    digest = hashlib.sha256()
    for file in sorted(file for file in path.rglob("*") if file.is_file()):
        digest.update(str(file.relative_to(path)).encode() + b"\0" + bytes.fromhex(file_digest(file)))
    return digest.hexdigest()


def text_stamp(text: str) -> tuple[int, ...]:
    """Return the stamp of a text: a tuple of one integer, the first 64 bits of the SHA-256 of the text."""
    return (int.from_bytes(hashlib.sha256(text.encode("utf-8")).digest()[:8]),)


def stamp_of(path: str) -> tuple[int, ...] | None:
    """Return the size (bytes), modification time (ns), change time (ns) and inode of a regular file.

    Returns:
        The four numbers; () for another kind of file; None for an inaccessible file.
    """
    try:
        status = os.stat(path)  # noqa: PTH116 - parsing a path takes longer than the call
    except (OSError, ValueError):
        return None
    regular = file_kind(status) == "regular file"
    return (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino) if regular else ()


def file_kind(status: os.stat_result) -> str:
    """Return the kind of a file: "regular file", "folder", "device", "pipe" or "socket".

    A file in /proc or /sys has the kind "file of the kernel", unless the file is a folder.

    Args:
        status: result of `os.stat` for the file.
    """
    if status.st_dev in _kernel_file_systems() and not stat.S_ISDIR(status.st_mode):
        return "file of the kernel"
    return _KINDS[stat.S_IFMT(status.st_mode)]


def require_regular(path: str | os.PathLike[str], kind: str) -> os.stat_result:
    """Return the status of a regular file.

    Args:
        path: path of the file.
        kind: kind of file that the caller reads, for the message ("an HDF5 file").

    Raises:
        InputError: the path has a zero byte, does not exist, or is not a regular file, or its folder is not readable.
    """
    place = os.fspath(path)
    if "\0" in place:
        raise InputError(f"{place!r} contains a zero byte, which is not allowed in file names; pass another path")
    try:
        status = Path(place).stat()
    except FileNotFoundError as error:
        raise InputError(f"{place} does not exist; check the path") from error
    except OSError as error:
        raise InputError(f"{place} cannot be read ({error.strerror}); check the path and its permissions") from error
    if file_kind(status) != "regular file":
        raise InputError(f"{place} is a {file_kind(status)}; pass {kind}")
    return status


@functools.cache
def _kernel_file_systems() -> set[int]:
    return {os.stat(path).st_dev for path in ("/proc", "/sys") if os.path.ismount(path)}  # noqa: PTH116


def content_of(path: str, stamp: tuple[int, ...]) -> str:
    """Compute the SHA-256 of a regular file. Successful results are cached by path and stamp.

    Args:
        path: path of the file.
        stamp: result of `stamp_of`. For (), the digest is that of an empty file, since reading a pipe would block.

    Returns:
        Hexadecimal digest; "" for an unreadable file, whose content is unknown and equals no other content.
    """
    try:
        return _digest(path, stamp)
    except OSError:
        return ""


@functools.lru_cache(maxsize=4096)  # clips may be segments of the same files
def _digest(path: str, stamp: tuple[int, ...]) -> str:
    return file_digest(path if stamp else os.devnull)
