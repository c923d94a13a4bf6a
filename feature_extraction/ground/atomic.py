"""Atomic writing: a failed write leaves no incomplete file, and keeps the previous file."""

import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path

from aadml.feature_extraction.ground.errors import InputError


@contextmanager
def atomic_path(path: str | os.PathLike[str], *, durable: bool = True, private: bool = False) -> Iterator[Path]:
    """Yield a temporary path beside `path` that replaces `path` on success and is removed on failure.

    The permissions of a replaced file are kept, except with `private`, and its owner and group if the process may set
    them. A symbolic link stays, and its target is written.

    Args:
        path: final path. Its folder is created if needed.
        durable: whether the content is flushed to the disk before the rename, so that a power cut leaves no
            incomplete file.
        private: whether only the owner may read and write the file.

    Yields:
        The temporary path, in the folder of the written file, with the suffix of that file.

    Raises:
        InputError: `path` cannot be a regular file or cannot be written, or an OSError is raised within the
            context.
    """
    final, temporary = Path(path), None
    try:
        final = target_of(final)
        _require_file_path(final)
        final.parent.mkdir(parents=True, exist_ok=True)
        # the name is stored before the creation of the file, which Ctrl-C may interrupt
        temporary = final.parent / f".{final.stem[:80]}.{secrets.token_hex(4)}.partial{final.suffix}"
        temporary.touch(0o600, exist_ok=False)
        created = temporary.stat()
        yield temporary
        if not private:
            _hand_on(final, temporary, created)
        if durable:
            flush_to_disk(temporary)
        temporary.replace(final)
    except OSError as error:
        raise InputError(
            f"{final} cannot be written ({error.strerror or error}); choose another path, or free some space"
        ) from error
    finally:
        if temporary is not None:
            with suppress(OSError):  # the cause of a failed write may prevent the removal as well
                temporary.unlink()


def refuse_other_kind(
    path: str | os.PathLike[str], kind: str, is_one: Callable[[Path], bool], advice: str = "choose another output"
) -> None:
    """Raise InputError if an output would replace a file of another kind.

    Args:
        path: output path.
        kind: noun phrase for messages, such as "a feature file".
        is_one: function that returns whether an existing file is of that kind. An empty file may always be replaced.
        advice: what to do about a file of another kind, for the message.

    Raises:
        InputError: `path` cannot be a regular file, cannot be read, or is a file of another kind.
    """
    final = Path(path)
    try:
        final = target_of(final)
        _require_file_path(final)
        other = final.exists() and final.stat().st_size > 0 and not is_one(final)
    except OSError as error:
        raise InputError(f"{final} cannot be written ({error.strerror or error}); choose another path") from error
    if other:
        raise InputError(f"{final} exists and is not {kind}, so the file is not overwritten; {advice}")


def refuse_address(output: Path) -> None:
    """Raise InputError for an output that is an address, such as "s3://bucket/clips.h5" or "hf:NAME"."""
    if match := re.match(r"hf:|\w[\w+.-]*:/", os.fspath(output)):  # a path has one "/" of "://"
        raise InputError(
            f"the output begins with {match[0].rstrip('/')} like an address, but files are written to this machine "
            "only; pass a local path"
        )


def refuse_input(output: str | os.PathLike[str], source: str | os.PathLike[str]) -> None:
    """Raise InputError if an output is the file or folder that is read."""
    if Path(output).exists() and Path(source).exists() and Path(output).samefile(source):
        raise InputError(f"{output} is the input; pass another output")


def refuse_links(*places: Path) -> None:
    """Raise InputError for a symbolic link at or below a path; such a link would direct a write to another file.

    This check is for paths whose names the program chooses. An output that the user typed may be a link.
    """
    for place in places:
        below = (Path(folder, name) for folder, *names in os.walk(place) for name in chain(*names))
        for path in chain([place], below):
            if path.is_symlink():
                raise InputError(f"{path} is a symbolic link, and is not written; replace it by a file or a folder")


def separate_hard_links(*places: Path) -> None:
    """Replace each existing file that has other hard links by a copy, so that a write in place changes no other file.

    Raises:
        InputError: a copy cannot be written.
    """
    for place in places:
        if place.is_file() and place.stat().st_nlink > 1:
            with atomic_path(place) as temporary:
                shutil.copyfile(place, temporary)


def target_of(link: Path) -> Path:
    """Return the target of a symbolic link; any other path is returned as it is."""
    return Path(os.path.realpath(link)) if link.is_symlink() else link


def _hand_on(final: Path, temporary: Path, created: os.stat_result) -> None:
    """Copy the permissions of the replaced file to the temporary file, and its owner and group if permitted.

    The folder may be writable for other users. Only the file that was created is therefore given away, and no link is
    followed. If the group cannot be set, it has no more permissions than other users.
    """
    handle = os.open(temporary, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        status, mode = os.fstat(handle), 0o666 & ~_umask()
        if status.st_nlink > 1:
            return
        if final.exists():
            before, unchanged = final.stat(), os.path.samestat(status, created)
            for owner in ((-1, before.st_gid), (before.st_uid, -1)) if unchanged else ():
                with suppress(OSError):
                    os.fchown(handle, *owner)
            mode = before.st_mode & 0o777
            if os.fstat(handle).st_gid != before.st_gid:
                mode &= ~0o070 | (mode & 0o007) << 3
        os.fchmod(handle, mode)
    finally:
        os.close(handle)


def _require_file_path(final: Path) -> None:
    """Raise InputError for a path that cannot be a regular file. A rename would replace a device, for example."""
    refuse_address(final)
    if final.is_symlink():
        raise InputError(f"{final} is in a loop of symbolic links; pass the path of a file to write")
    if final.is_dir():
        raise InputError(f"{final} is a folder; pass the path of a file to write")
    if final.exists() and not final.is_file():
        raise InputError(f"{final} is a device, a pipe or a socket; pass the path of a file to write")
    lowest = next(parent for parent in final.parents if parent.exists())
    if not lowest.is_dir():
        raise InputError(f"{final} cannot be written, because {lowest} is not a folder; choose another path")


def write_bytes(path: str | os.PathLike[str], data: bytes, *, durable: bool = True, private: bool = False) -> None:
    """Write `data` to `path`, completely or not at all; see `atomic_path` for the options and the errors."""
    with atomic_path(path, durable=durable, private=private) as temporary:
        handle = os.open(temporary, os.O_WRONLY)
        try:
            append_all(handle, data)
        finally:
            os.close(handle)


def append_all(handle: int, data: bytes | memoryview) -> None:
    """Write all of `data` to a file descriptor, with further writes after a partial write.

    Raises:
        OSError: the data cannot be written.
    """
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]


def remove_leftovers(path: str | os.PathLike[str]) -> None:
    """Remove the temporary files left behind by killed writers of `path`; no process may be writing `path`.

    Raises:
        OSError: the folder cannot be read, or a file cannot be removed.
    """
    final = target_of(Path(path))
    leftover = re.compile(rf"\.{re.escape(final.stem[:80])}\.[a-z0-9_]{{8}}\.partial{re.escape(final.suffix)}")
    if final.parent.is_dir():
        for candidate in final.parent.iterdir():
            if leftover.fullmatch(candidate.name):
                candidate.unlink(missing_ok=True)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write `text` as UTF-8 to `path`, completely or not at all; see `atomic_path` for the errors."""
    write_bytes(path, text.encode())


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def flush_to_disk(path: str | os.PathLike[str]) -> None:
    """Flush the content of a file, or the entries of a folder, to the disk.

    Raises:
        OSError: the file or folder cannot be opened or flushed.
    """
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
