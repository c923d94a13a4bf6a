"""Faults at counted points: before, in the middle of and after every call that changes what lies below a folder.

After a call and before the next one the disk holds the same bytes, so that the two are one point; the last point comes
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
CALLS = ("mkdir", "open", "write", "ftruncate", "truncate", "chmod", "fsync", "rename", "replace", "unlink", "rmdir")
"""Of the module `os`; all that this package changes files by goes through them, which `audited` watches."""

GROWING = ("mkdir", "open", "write")
"""Calls that a full disk refuses."""

Reach = Callable[[str, str], None]
"""Called with (call, moment) at every point; it may end the process or raise."""


@contextmanager
def watched(folder: Path, reach: Reach) -> Iterator[None]:
    """Call `reach` around every call of this process that changes something in `folder` or below.

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
    """Do `work` and list every (call, moment) at which it could be killed."""
    found: list[tuple[str, str]] = []
    with watched(folder, lambda call, moment: found.append((call, moment))):
        work()
    return found


def killing(number: int) -> Reach:
    """End the process at the point of that number, from 0, as `kill -9` would: nothing is tidied up."""
    reached = iter(range(number + 1))

    def reach(call: str, moment: str) -> None:
        if next(reached) == number:
            os._exit(KILLED)

    return reach


def failing(number: int, code: int) -> Reach:
    """Let every call from the point of that number on fail with an error of the system.

    Args:
        number: of the point, from 0.
        code: ENOSPC fails what takes space, a write in its middle; any other error fails every change.
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
    """How a child process ended.

    Attributes:
        code: its exit status.
        text: what it returned, or the error that ended it.
    """

    code: int
    text: str


SECONDS = 600
"""Seconds after which a child is ended that waits for what its parent holds."""


def in_child(work: Callable[[], object], reach: Reach | None = None, folder: Path | None = None) -> Ending:
    """Do `work` in a forked child, which starts as warm as this process; an `InputError` ends it with status 2."""
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
    """Give the path that an argument means: a path, or an open file."""
    if isinstance(argument, int):
        return Path(str(Path(f"/proc/self/fd/{argument}").readlink()).removesuffix(" (deleted)"))
    return Path(os.fsdecode(argument)).absolute()
