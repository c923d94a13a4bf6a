"""Faults at counted points: before, in the middle of and after every call that changes files below a folder.

After a call and before the next call the disk contains the same bytes, so that both are one point. The last point comes
after the last call.
"""

import errno
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

KILLED = 77
REFUSED = 2
CALLS = ("mkdir", "open", "write", "ftruncate", "truncate", "fchown", "fchmod", "fsync", "rename", "replace",
         "unlink", "rmdir")  # fmt: skip
"""Functions of the module `os` by which this package changes files.

tests/runs/test_fault_injection.py checks that there are no others.
"""

GROWING = ("mkdir", "open", "write")
"""Calls that fail on a full disk."""

Reach = Callable[[str, str], None]
"""Called with (call, moment) at every point; may end the process or raise an error."""


@contextmanager
def watched(folder: Path, reach: Reach) -> Iterator[None]:
    """Call `reach` around every call of this process that changes `folder` or its contents.

    The moments are "before", "half" (of a write: half of the bytes are in the file if `reach` does not return) and,
    once, "end".
    """
    originals = {name: getattr(os, name) for name in CALLS}

    def wrapped(name: str) -> Callable[..., Any]:
        original = originals[name]

        def call(*arguments: Any, **options: Any) -> Any:
            if not _changes(name, arguments, folder):
                return original(*arguments, **options)
            reach(name, "before")
            if name != "write" or len(arguments[1]) < 2:
                return original(*arguments, **options)
            half = original(arguments[0], arguments[1][: len(arguments[1]) // 2])
            reach(name, "half")
            return half + original(arguments[0], arguments[1][half:])

        return call

    for name in CALLS:
        setattr(os, name, wrapped(name))
    try:
        yield
        reach("exit", "end")
    finally:
        for name, original in originals.items():
            setattr(os, name, original)


def points(folder: Path, work: Callable[[], object]) -> list[tuple[str, str]]:
    """Run `work` and return every (call, moment) at which it could be killed."""
    found: list[tuple[str, str]] = []
    with watched(folder, lambda call, moment: found.append((call, moment))):
        work()
    return found


def killing(number: int) -> Reach:
    """Return a function that ends the process at a point, counted from 0, without any cleanup, as `kill -9` does."""
    reached = iter(range(number + 1))

    def reach(call: str, moment: str) -> None:
        if next(reached) == number:
            os._exit(KILLED)

    return reach


def failing(number: int, code: int) -> Reach:
    """Return a function that makes every call from a point on fail with a system error.

    Args:
        number: number of the point, from 0.
        code: ENOSPC fails the calls that need space, and a write in its middle; another error fails every change.
    """
    count = 0

    def reach(call: str, moment: str) -> None:
        nonlocal count
        count += 1
        if count > number and moment != "end" and (code != errno.ENOSPC or call in GROWING):
            raise OSError(code, os.strerror(code))

    return reach


@dataclass(frozen=True)
class Ending:
    """Result of a child process.

    Attributes:
        code: its exit status.
        text: its return value, or the error that ended it.
    """

    code: int
    text: str


SECONDS = 600
"""Seconds after which a blocked child is killed."""


def in_child(work: Callable[[], object], reach: Reach | None = None, folder: Path | None = None) -> Ending:
    """Run `work` in a forked child with the imports of this process; an `InputError` ends the child with status 2."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _end(work, reach, folder, writing)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    return Ending(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), text)


def _end(work: Callable[[], object], reach: Reach | None, folder: Path | None, writing: int) -> None:
    from aadml.feature_extraction.ground.errors import InputError

    code, text = 1, ""
    signal.alarm(SECONDS)
    try:
        if reach is None or folder is None:
            text = str(work() or "")
        else:
            with watched(folder, reach):
                text = str(work() or "")
        code = 0
    except InputError as error:
        code, text = REFUSED, str(error)
    except BaseException:  # the parent reports it
        text = traceback.format_exc()
    finally:
        os.write(writing, text.encode())
        sys.stdout.flush()
        os._exit(code)


def _changes(name: str, arguments: tuple[Any, ...], folder: Path) -> bool:
    if name == "open" and not arguments[1] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
        return False
    return any(_place(argument).is_relative_to(folder) for argument in arguments[: 2 if name in _TWO else 1])


_TWO = ("rename", "replace")


def _place(argument: Any) -> Path:
    """Return the path of an argument, which is a path or an open file."""
    if isinstance(argument, int):
        return Path(str(Path(f"/proc/self/fd/{argument}").readlink()).removesuffix(" (deleted)"))
    return Path(os.fsdecode(argument)).absolute()
