"""Exclusive locks between processes: `flock`, or a lock file on file systems without `flock` (some NFS)."""

import errno
import fcntl
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aadml.feature_extraction.ground.errors import InputError, InUseError

WITHOUT_FLOCK = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
_PAUSE = 1.0  # seconds between two checks of the lock file of another process
_GRACE, _STEP = 2.0, 0.05  # seconds for which `flock` is tried again, and seconds between two tries


@contextmanager
def locked(handle: int, lock_file: Path, busy: str, *, wait: bool = False) -> Iterator[None]:
    """Acquire an exclusive lock for the context. A lock by `flock` also ends with the process.

    Args:
        handle: descriptor of the file or folder that is locked.
        lock_file: file that replaces `flock` on file systems without `flock`. The file contains the host name and
            the process number. A killed process leaves the file behind.
        busy: message for a lock that another process holds.
        wait: whether to wait for a lock that another process holds; False raises InUseError after at most 2 seconds.

    Raises:
        InUseError: another process holds the lock, or a process of this machine has left `lock_file` behind.
        InputError: the file or folder cannot be locked, or `lock_file` cannot be written.
    """
    try:
        _flock(handle, wait=wait)
    except BlockingIOError:
        raise InUseError(busy) from None
    except OSError as error:
        if error.errno not in WITHOUT_FLOCK:
            raise InputError(f"{lock_file.parent} cannot be locked ({error.strerror}); choose another path") from error
        with _held(lock_file, busy, wait=wait):
            yield
    else:
        yield


def _flock(handle: int, *, wait: bool) -> None:
    """Acquire a lock by `flock`.

    Without `wait`, `flock` is tried again for `_GRACE` seconds, because a killed process holds its lock until its exit.
    """
    until = time.monotonic() + _GRACE
    while True:
        try:
            return fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise
        time.sleep(_STEP)


@contextmanager
def _held(lock_file: Path, busy: str, *, wait: bool) -> Iterator[None]:
    while not _created(lock_file):
        advice, has_ended = _holder(lock_file)
        if has_ended:
            raise InUseError(advice)
        if not wait:
            raise InUseError(f"{busy}, or {advice}")
        time.sleep(_PAUSE)
    try:
        yield
    finally:
        lock_file.unlink(missing_ok=True)


def is_held(lock_file: Path) -> bool:
    """Return whether a lock file exists, except that of a process of this machine that has ended."""
    return lock_file.exists() and not _holder(lock_file)[1]


def _created(lock_file: Path) -> bool:
    """Create a lock file with host name and process number; return False for an existing file."""
    try:
        with lock_file.open("x", encoding="utf-8") as file:
            file.write(f"{socket.gethostname()} {os.getpid()}\n")
    except FileExistsError:
        return False
    except OSError as error:
        raise InputError(f"{lock_file} cannot be written ({error.strerror}); choose another path") from error
    return True


def _holder(lock_file: Path) -> tuple[str, bool]:
    """Return advice on the writer of a lock file, and whether the writer has ended."""
    try:
        host, _, number = lock_file.read_text(encoding="utf-8").strip().rpartition(" ")
    except (OSError, ValueError):
        host = number = ""
    if not host or not number.isdecimal():
        return f"remove {lock_file} if no other process is running", False
    has_proc = Path("/proc/self").exists()
    has_ended = host == socket.gethostname() and has_proc and not Path(f"/proc/{number}").exists()
    if has_ended and lock_file.exists():  # a process that releases its lock removes the file before it ends
        return (
            f"{lock_file} was left behind by process {number} of this machine, which has ended; remove this file",
            True,
        )
    return f"remove {lock_file} if process {number} on {host} has ended", False
