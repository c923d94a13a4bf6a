"""A run folder as a transactional store: replacing `manifest.json` is the only commit.

The manifest names every file of the run with its size and SHA-256, and how much of the log counts. A commit writes new
files, replaces the manifest, and then removes what the old manifest named and the new one does not. State and best
weights get names that are never used again, and a name that gets other content is taken out of the run first, so that
a process that ends anywhere in between leaves the last commit whole. Nothing else in the folder is ever touched.
"""

import fcntl
import hashlib
import os
import re
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from aadml.feature_extraction.ground.atomic import append_all, flush_to_disk, write_bytes
from aadml.feature_extraction.ground.checksummed_json import FileSum
from aadml.feature_extraction.ground.errors import InputError
from aadml.runs.manifest import LOG, MANIFEST, NUMBERED, RESERVED, RunManifest, read_file, read_log, read_manifest

FLUSH_SECONDS = 60.0
"""Files are forced to the disk at the end of a training, and before that at most so often."""

_PARTIAL = re.compile(
    r"\.(manifest|config|environment|evaluation|model|README|(state|best)-\d+)\.[a-z0-9_]{8}"
    r"\.partial\.(json|yaml|safetensors|md)"
)


class RunStore:
    """A run folder under its lock, given by `begun` and `opened`.

    Args:
        folder: that exists.
        manifest: of the last commit.
        made: whether this process made the folder.
    """

    def __init__(self, folder: Path, manifest: RunManifest, *, made: bool = False) -> None:
        self.folder = folder
        self.manifest = manifest
        self._made = made
        self._log = hashlib.sha256()
        self._logged = 0
        self._flushed_at = time.monotonic()
        self._unflushed = set(manifest.files)

    def read(self, name: str) -> bytes:
        """Read a file and check it; see `read_file`."""
        return read_file(self.folder, name, self.manifest)

    def next_number(self) -> int:
        """Give a number that no state or best weights of this folder ever had."""
        found = [int(match[2]) for path in self.folder.iterdir() if (match := NUMBERED.fullmatch(path.name))]
        return max([self.manifest.generation, *found]) + 1

    def append(self, line: bytes) -> None:
        """Append a line to the log; it counts from the next commit on."""
        path = self.folder / LOG
        with _writing(path):
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
            try:
                append_all(handle, line)
            finally:
                os.close(handle)
        self._log.update(line)
        self._logged += len(line)

    def commit(
        self, files: Mapping[str, bytes], *, drop: Iterable[str] = (), seconds: float | None = None, flush: bool = False
    ) -> None:
        """Make new files and what was logged part of the run.

        Args:
            files: name -> content.
            drop: names that are no longer part of the run; they are removed.
            seconds: spent fitting so far; None leaves the figure.
            flush: whether everything must be on the disk now.

        Raises:
            InputError: the folder cannot be written, or the disk is full; the last commit is untouched.
        """
        changed_names = [n for n, data in files.items() if self.manifest.files.get(n) not in (None, FileSum.of(data))]
        if changed_names:
            self.commit({}, drop=changed_names)
        before, changed = self.manifest, self._changed(files, set(drop), seconds)
        flush = flush or time.monotonic() - self._flushed_at >= FLUSH_SECONDS
        try:
            for name, data in files.items():
                write_bytes(self.folder / name, data, durable=False)
            self._unflushed |= set(files)
            if flush:
                self._flush(changed.files)
            write_bytes(self.folder / MANIFEST, changed.to_bytes(), durable=flush)
        except InputError:
            self._remove(set(files) - set(before.files))
            raise
        self.manifest = changed
        with _writing(self.folder):
            if flush:
                flush_to_disk(self.folder)
            for name in set(before.files) - set(changed.files):
                (self.folder / name).unlink(missing_ok=True)

    def abandon(self) -> None:
        """Take back a run in which nothing was learned: its own files, and the folder if this process made it.

        A folder in which anything else lies stays.
        """
        if self.manifest.numbered("state") or any(name.startswith("model.") for name in self.manifest.files):
            return
        self._remove({MANIFEST, LOG, *self.manifest.files})
        if self._made:
            with suppress(OSError):  # something else lies there
                self.folder.rmdir()

    def settle(self) -> None:
        """Cut the log to what the manifest says, and remove what a process that was killed left of its own files."""
        counted = read_log(self.folder, self.manifest)
        path = self.folder / LOG
        if path.is_file() and path.stat().st_size != len(counted):
            os.truncate(path, len(counted))
        self._log, self._logged = hashlib.sha256(counted), len(counted)
        for path in list(self.folder.iterdir()):
            unnamed = NUMBERED.fullmatch(path.name) and path.name not in self.manifest.files
            if (unnamed or _PARTIAL.fullmatch(path.name)) and path.is_file():
                path.unlink(missing_ok=True)

    def _changed(self, files: Mapping[str, bytes], drop: set[str], seconds: float | None) -> RunManifest:
        kept = {name: one for name, one in self.manifest.files.items() if name not in drop}
        return replace(
            self.manifest,
            generation=self.manifest.generation + 1,
            log=FileSum(self._logged, self._log.hexdigest()),
            files=kept | {name: FileSum.of(data) for name, data in files.items()},
            seconds=self.manifest.seconds if seconds is None else seconds,
        )

    def _flush(self, names: Iterable[str]) -> None:
        """Force to the disk what a manifest is about to name and an earlier commit did not wait for."""
        with _writing(self.folder):
            for path in (self.folder / name for name in [*sorted(self._unflushed & set(names)), LOG]):
                if path.is_file():
                    flush_to_disk(path)
        self._unflushed.clear()
        self._flushed_at = time.monotonic()

    def _remove(self, names: Iterable[str]) -> None:
        """Remove own files after a failure, as far as the system lets us."""
        for name in names:
            with suppress(OSError):
                (self.folder / name).unlink(missing_ok=True)


@contextmanager
def new_run(folder: Path, *, made: bool = False) -> Iterator[RunStore]:
    """Begin a run in a folder, which is made where it is not there; the lock is held until the end.

    A training that is refused before its first epoch leaves nothing behind.

    Args:
        folder: of the run.
        made: whether this process made it.

    Raises:
        InputError: the folder cannot be made or written, holds a run or files of a run's names, or is in use.
    """
    with _writing(folder):
        made = made or not folder.exists()
        folder.mkdir(parents=True, exist_ok=True)
    with _lock(folder, wait=False):
        taken = sorted(path.name for path in folder.iterdir() if path.name in RESERVED or NUMBERED.fullmatch(path.name))
        if taken:
            raise InputError(f"{folder}: holds a {taken[0]} already; a run wants a folder of its own")
        store = RunStore(folder, RunManifest(uuid.uuid4().hex), made=made)
        try:
            with _writing(folder):
                store.settle()  # a process that was killed here may have left the beginning of a manifest
            store.commit({})  # from here on the folder is known as a run
            yield store
        except InputError:
            store.abandon()
            raise


@contextmanager
def open_run(folder: Path, *, wait: bool = False) -> Iterator[RunStore]:
    """Open a run to continue it; the lock is held until the end, and leftovers of a killed process are cleared.

    Args:
        folder: of the run.
        wait: whether to wait for the lock, or to refuse.

    Raises:
        InputError: not a run, damaged, or in use.
    """
    read_manifest(folder)
    with _lock(folder, wait=wait):
        store = RunStore(folder, read_manifest(folder))
        with _writing(folder):
            store.settle()
        yield store


@contextmanager
def _lock(folder: Path, *, wait: bool) -> Iterator[None]:
    with _writing(folder):
        handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"{folder}: another process is training this run; wait for it to end") from None
        except OSError as error:
            raise InputError(f"{folder}: cannot be locked ({error.strerror}); choose another place") from error
        yield
    finally:
        os.close(handle)


@contextmanager
def _writing(place: Path) -> Iterator[None]:
    """Say of what the system refuses where it happened and what to do."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"{place}: cannot be written ({error.strerror or error}); choose another place or free some space"
        ) from error
