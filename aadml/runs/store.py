"""Run folder as a transactional store: replacing `manifest.json` is the only commit.

The manifest lists every file of the run with its size and SHA-256, and the valid length of the log. A commit writes
new files, replaces the manifest, and then removes files that only the old manifest lists. State and best weights
receive names that are never used again. If a commit changes the content of a file, a separate commit removes the
file from the run first. A process that ends at any point therefore leaves the last commit intact. Files in the
folder with names that runs do not use stay unchanged.
"""

import hashlib
import os
import re
import time
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from aadml.feature_extraction.ground.atomic import (
    append_all,
    flush_to_disk,
    refuse_links,
    separate_hard_links,
    write_bytes,
)
from aadml.feature_extraction.ground.checksummed_json import FileSum
from aadml.feature_extraction.ground.errors import InputError, InUseError
from aadml.feature_extraction.ground.locks import locked
from aadml.runs.manifest import LOG, MANIFEST, NUMBERED, RESERVED, RunManifest, read_manifest

FLUSH_SECONDS = 60.0
"""Shortest time between two flushes to the disk during training; the end of training flushes too."""

_PARTIAL = re.compile(
    r"\.(manifest|config|environment|evaluation|metrics|model|README|(state|best)-\d+)\.[a-z0-9_]{8}"
    r"\.partial\.(jsonl?|yaml|safetensors|md)"
)


class RunStore:
    """Locked run folder, as yielded by `new_run` and `open_run`.

    Args:
        manifest: manifest of the last commit, in an existing folder.
    """

    def __init__(self, manifest: RunManifest) -> None:
        self.folder = manifest.folder
        self.manifest = manifest
        self._log = hashlib.sha256()
        self._logged = 0
        self._flushed_at = time.monotonic()
        self._unflushed = set(manifest.files)

    def next_number(self) -> int:
        """Return a number that was not used before for states or best weights in this folder."""
        used = [int(match[2]) for path in self.folder.iterdir() if (match := NUMBERED.fullmatch(path.name))]
        return max([self.manifest.generation, *used]) + 1

    def append(self, line: bytes) -> None:
        """Append a line to the log. The next commit makes the line valid.

        Raises:
            InputError: the log cannot be written.
        """
        path = self.folder / LOG
        with _writing(path):
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o666)
            try:
                append_all(handle, line)
            finally:
                os.close(handle)
        self._log.update(line)
        self._logged += len(line)

    def commit(
        self,
        files: Mapping[str, bytes],
        *,
        drop: Iterable[str] = (),
        seconds: float | None = None,
        flush: bool = False,
        private: Collection[str] = (),
    ) -> None:
        """Add new files and the appended log lines to the run.

        Args:
            files: name -> content.
            drop: names of files to remove from the run.
            seconds: seconds spent fitting so far; None keeps the last value.
            flush: whether to flush everything to the disk now.
            private: names of files that only their owner may read.

        Raises:
            InputError: the folder cannot be written, or the disk is full. The last commit stays valid, but files due
                for new content may already be removed from the run.
        """
        changed_names = [n for n, data in files.items() if self.manifest.files.get(n) not in (None, FileSum.of(data))]
        if changed_names:
            self.commit({}, drop=changed_names)
        before, changed = self.manifest, self._changed(files, set(drop), seconds)
        flush = flush or time.monotonic() - self._flushed_at >= FLUSH_SECONDS
        try:
            for name, data in files.items():
                write_bytes(self.folder / name, data, durable=False, private=name in private)
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
        """Remove the files of the run, unless the run has a saved state or a model."""
        if self.manifest.numbered("state") or any(name.startswith("model.") for name in self.manifest.files):
            return
        self._remove({MANIFEST, LOG, *self.manifest.files})

    def settle(self) -> None:
        """Cut the log to its valid length, and remove files that a killed process left behind.

        Raises:
            InputError: the log is missing, damaged or changed, or is a hard link and cannot be copied.
            OSError: the log cannot be cut, or a file cannot be removed.
        """
        counted = self.manifest.read_log()
        path = self.folder / LOG
        separate_hard_links(path)
        if path.is_file() and path.stat().st_size != len(counted):
            os.truncate(path, len(counted))
        self._log, self._logged = hashlib.sha256(counted), len(counted)
        for path in list(self.folder.iterdir()):
            unnamed = NUMBERED.fullmatch(path.name) and path.name not in self.manifest.files
            if (unnamed or _PARTIAL.fullmatch(path.name)) and path.is_file():
                path.unlink(missing_ok=True)

    def _changed(self, files: Mapping[str, bytes], drop: set[str], seconds: float | None) -> RunManifest:
        manifest = self.manifest
        remaining = {name: file_sum for name, file_sum in manifest.files.items() if name not in drop}
        return replace(
            manifest,
            generation=manifest.generation + 1,
            log=FileSum(self._logged, self._log.hexdigest()),
            files=remaining | {name: FileSum.of(data) for name, data in files.items()},
            seconds=manifest.seconds if seconds is None else seconds,
        )

    def _flush(self, names: Iterable[str]) -> None:
        """Flush the log, and each of the files `names` that no earlier commit has flushed."""
        with _writing(self.folder):
            for path in (self.folder / name for name in [*sorted(self._unflushed & set(names)), LOG]):
                if path.is_file():
                    flush_to_disk(path)
        self._unflushed.clear()
        self._flushed_at = time.monotonic()

    def _remove(self, names: Iterable[str]) -> None:
        for name in names:
            with suppress(OSError):
                (self.folder / name).unlink(missing_ok=True)


@contextmanager
def new_run(folder: Path, *, made: bool = False) -> Iterator[RunStore]:
    """Yield the store of a new run, under its lock. A missing folder is created.

    If an InputError ends the run before its first saved state, the files of the run are removed.

    Args:
        folder: folder of the run.
        made: whether this process created the folder before this call.

    Raises:
        InputError: the folder cannot be created or written, is in use, or already contains run files or a symbolic
            link.
    """
    with _writing(folder):
        is_new = made or not folder.exists()
        folder.mkdir(parents=True, exist_ok=True)
    with _empty_removed(folder, is_new=is_new), _lock(folder, wait=False):
        taken = sorted(path.name for path in folder.iterdir() if path.name in RESERVED or NUMBERED.fullmatch(path.name))
        if taken:
            raise InputError(f"{folder} already contains the file {taken[0]}; choose an empty folder for the run")
        store = RunStore(RunManifest(folder, uuid.uuid4().hex))
        try:
            with _writing(folder):
                store.settle()  # a killed process may have left a partial manifest
            store.commit({})  # from here on the folder is a run
            yield store
        except InputError:
            store.abandon()
            raise


@contextmanager
def open_run(folder: Path, *, wait: bool = False) -> Iterator[RunStore]:
    """Yield the store of an existing run, under its lock, without the leftovers of a killed process.

    Args:
        folder: folder of the run.
        wait: whether to wait for the lock instead of raising an error.

    Raises:
        InputError: the folder is not a run, is damaged or in use, contains a symbolic link, or cannot be written.
    """
    read_manifest(folder)
    with _lock(folder, wait=wait):
        store = RunStore(read_manifest(folder))
        with _writing(folder):
            store.settle()
        yield store


@contextmanager
def _empty_removed(folder: Path, *, is_new: bool) -> Iterator[None]:
    """Remove a new, empty folder after an error, unless another process uses the folder."""
    try:
        yield
    except InUseError:
        raise
    except InputError:
        with suppress(OSError):  # the folder is not empty, or does not exist
            if is_new:
                folder.rmdir()
        raise


@contextmanager
def _lock(folder: Path, *, wait: bool) -> Iterator[None]:
    with _writing(folder):
        refuse_links(*folder.iterdir())
        handle = os.open(folder, os.O_RDONLY)
    busy = f"{folder}: another process is writing this run; wait until that process ends"
    try:
        with locked(handle, folder / "lock.host", busy, wait=wait):
            yield
    finally:
        os.close(handle)


@contextmanager
def _writing(place: Path) -> Iterator[None]:
    """Convert an OSError to an InputError with the path and a hint."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"{place} cannot be written ({error.strerror or error}); choose another path, or free some space"
        ) from error
