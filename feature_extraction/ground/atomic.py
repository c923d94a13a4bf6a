"""Files that are either whole or absent."""

import os
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from aadml.feature_extraction.ground.errors import InputError


@contextmanager
def atomic_path(path: str | os.PathLike[str], *, durable: bool = True) -> Iterator[Path]:
    """Give a temporary path beside `path`; on success it takes the place of `path`, on failure it vanishes.

    A file that is replaced hands on its permissions. A symbolic link stays, and the file that it names is written.

    Args:
        path: the final name. Its folder is made if needed.
        durable: whether the content is forced to the disk before the rename (a power cut then loses nothing either).

    Yields:
        The temporary path, in the same folder, with the same suffix.

    Raises:
        InputError: no file can be there, the folder cannot be written, or the disk is full.
    """
    final = _followed(path)
    temporary: Path | None = None
    try:
        _refuse_no_file(final)
        final.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(
            dir=final.parent, prefix=f".{final.stem[:80]}.", suffix=f".partial{final.suffix}"
        )
        os.close(handle)
        temporary = Path(name)
        yield temporary
        temporary.chmod(final.stat().st_mode & 0o777 if final.exists() else 0o666 & ~_umask())
        if durable:
            flush_to_disk(temporary)
        temporary.replace(final)
    except OSError as error:
        raise InputError(
            f"{final}: cannot be written ({error.strerror or error}); choose another place or free some space"
        ) from error
    finally:
        if temporary is not None:
            with suppress(OSError):  # what refused the writing may refuse this too
                temporary.unlink(missing_ok=True)


def refuse_other_kind(path: str | os.PathLike[str], kind: str, is_one: Callable[[Path], bool]) -> None:
    """Refuse, before the work is done, an output that would replace what is not of its kind.

    Args:
        path: of the output.
        kind: what the output is, as "a feature file".
        is_one: whether an existing file is of that kind; an empty one is of every kind.

    Raises:
        InputError: no file can be there, or one of another kind is.
    """
    final = _followed(path)
    try:
        _refuse_no_file(final)
        other = final.exists() and final.stat().st_size > 0 and not is_one(final)
    except OSError as error:
        raise InputError(f"{final}: cannot be written ({error.strerror or error}); choose another place") from error
    if other:
        raise InputError(f"{final}: exists and is not {kind}; it is not overwritten, name another output")


def _followed(path: str | os.PathLike[str]) -> Path:
    """Give the place that a symbolic link names, be there a file yet or not; any other path as it is."""
    given = Path(path)
    return Path(os.path.realpath(given)) if given.is_symlink() else given


def _refuse_no_file(final: Path) -> None:
    """Refuse a place where no file can be: renaming one there would replace a device, or a link, itself."""
    if final.is_symlink():
        raise InputError(f"{final}: is a symbolic link that leads back to itself; give the name of a file to write")
    if final.is_dir():
        raise InputError(f"{final}: is a folder; give the name of a file to write")
    if final.exists() and not final.is_file():
        raise InputError(f"{final}: is a device or a pipe; give the name of a file to write")
    lowest = next(place for place in final.parents if place.exists())
    if not lowest.is_dir():
        raise InputError(f"{final}: cannot be written, as {lowest} is no folder; choose another place")


def write_bytes(path: str | os.PathLike[str], data: bytes, *, durable: bool = True) -> None:
    """Write `data` to `path`, whole or not at all."""
    with atomic_path(path, durable=durable) as temporary:
        handle = os.open(temporary, os.O_WRONLY)
        try:
            append_all(handle, data)
        finally:
            os.close(handle)


def append_all(handle: int, data: bytes) -> None:
    """Write all of `data` to an open file, however often the system takes only a part of it."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]


def remove_leftovers(path: str | os.PathLike[str]) -> None:
    """Remove what killed processes left of their attempts to write `path`; nobody else may be writing it meanwhile."""
    final = _followed(path)
    leftover = re.compile(rf"\.{re.escape(final.stem[:80])}\.[a-z0-9_]{{8}}\.partial{re.escape(final.suffix)}")
    if final.parent.is_dir():
        for candidate in final.parent.iterdir():
            if leftover.fullmatch(candidate.name):
                candidate.unlink(missing_ok=True)


def write_text(path: str | os.PathLike[str], text: str, *, durable: bool = True) -> None:
    """Write `text` (UTF-8) to `path`, whole or not at all."""
    write_bytes(path, text.encode(), durable=durable)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def flush_to_disk(path: str | os.PathLike[str]) -> None:
    """Force the content of a file, or the names in a folder, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
