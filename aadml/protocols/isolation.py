"""Isolation of a process by the kernel of Linux: namespaces, a read-only file system, and Landlock.

References: https://docs.kernel.org/userspace-api/landlock.html and `man 7 namespaces`.
"""

import ctypes
import os
import signal
import site
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

_LIBRARY = ctypes.CDLL(None, use_errno=True)

NAMESPACES = 0x00020000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
"""CLONE_NEWNS, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET."""

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF, _MOUNT_SETATTR = 444, 445, 446, 442
_RECURSIVE, _READ_ONLY, _PRIVATE, _NO_NEW_PRIVILEGES = 0x8000, 1, 1 << 18, 38

READ = 1 | 4 | 8
"""Landlock rights to execute, to read a file and to list a folder."""

ALL = (1 << 13) - 1
"""All rights over files and folders in Landlock, version 1."""

_OF_FILES = 1 | 2 | 4
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/urandom", "/dev/random")
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/proc", "/sys/devices/system")


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64),)


class _Rule(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("rights", ctypes.c_uint64), ("folder", ctypes.c_int32))


class _Attributes(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "user"))


def libraries() -> tuple[str, ...]:
    """Return the folders of the system, Python, its packages and aadml, which an isolated process can read."""
    root = Path(__file__).resolve().parents[2]
    packages = [folder for folder in sys.path if Path(folder).name in ("site-packages", "dist-packages")]
    folders = [*_SYSTEM, sys.prefix, sys.base_prefix, *site.getsitepackages(), *packages]
    folders += [str(Path(sys.executable).resolve().parents[1]), str(root / "aadml"), str(root / "feature_extraction")]
    return tuple(dict.fromkeys(os.path.realpath(folder) for folder in folders if Path(folder).exists()))


def isolate(scratch: Path, readable: Iterable[str]) -> None:
    """Continue in an isolated child process. This process waits, and then exits with the exit status of the child.

    The child has no network and cannot access other processes. The child reads only `readable`, devices such as
    /dev/null, and two file systems in memory, at `scratch` and /dev/shm. The child writes only to these devices and
    file systems in memory. The file systems in memory are empty at first, and end with the child. All restrictions
    also hold for processes that the child starts.

    Args:
        scratch: an existing empty folder.
        readable: files and folders that can be read.

    Raises:
        OSError: the kernel lacks or forbids namespaces, the mounts or Landlock.
    """
    user, group = os.getuid(), os.getgid()
    _continue_in_child()  # without the threads of libraries, which forbid a new namespace
    _call("unshare", NAMESPACES)
    for name, line in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        Path("/proc/self", name).write_text(line)
    _continue_in_child()
    _mount("none", "/", None, _PRIVATE | 1 << 14)
    for place, kind in ((str(scratch), "tmpfs"), ("/dev/shm", "tmpfs"), ("/proc", "proc")):
        _mount(kind, place, kind, 0)
    _system(_MOUNT_SETATTR, -100, b"/", _RECURSIVE, ctypes.byref(_Attributes(_READ_ONLY)), 32)
    for place in (str(scratch), "/dev/shm"):
        _system(_MOUNT_SETATTR, -100, place.encode(), 0, ctypes.byref(_Attributes(0, _READ_ONLY)), 32)
    _restrict([(place, READ) for place in readable], [str(scratch), "/dev/shm", *_DEVICES])


def _continue_in_child() -> None:
    """Fork and continue in the child. The parent waits and exits with the status of the child."""
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
    _call("prctl", 1, signal.SIGKILL)  # killed together with the parent


def _restrict(readable: Sequence[tuple[str, int]], writable: Sequence[str]) -> None:
    ruleset = _system(_CREATE_RULESET, ctypes.byref(_Ruleset(ALL)), ctypes.sizeof(_Ruleset), 0)
    for place, rights in [*readable, *((place, ALL) for place in writable)]:
        if not Path(place).exists():
            continue
        folder = os.open(place, os.O_PATH | os.O_CLOEXEC)
        rule = _Rule(rights if Path(place).is_dir() else rights & _OF_FILES, folder)
        _system(_ADD_RULE, ruleset, 1, ctypes.byref(rule), 0)
        os.close(folder)
    _call("prctl", _NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    _system(_RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def _mount(source: str, target: str, kind: str | None, flags: int) -> None:
    _call("mount", source.encode(), target.encode(), kind and kind.encode(), ctypes.c_ulong(flags), None)


def _system(*arguments: object) -> int:
    return _call("syscall", *arguments)


def _call(name: str, *arguments: object) -> int:
    result: int = getattr(_LIBRARY, name)(*arguments)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result
