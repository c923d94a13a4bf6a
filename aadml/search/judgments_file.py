"""File of judgments that the search page writes, for `aadml evaluate --relevance`."""

import csv
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from aadml.feature_extraction.ground.atomic import atomic_path, refuse_links
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.file_content import read_bytes
from aadml.feature_extraction.ground.locks import locked
from aadml.retrieval.judgments import HEADER

LONGEST, MOST = 500, 100_000
"""Largest number of characters of a name, and largest number of judgments of a file."""


class JudgmentsFile:
    """CSV file with a line for each judged pair of a query and an item.

    Args:
        path: path of the file, which is created by the first judgment.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = Lock()

    def record(self, query: str, item: str, *, fits: bool) -> int:
        """Write a judgment, and return the number of judgments. An earlier judgment of the same pair is replaced.

        Args:
            query: name of the query.
            item: id of the item.
            fits: whether the item is relevant to the query.

        Raises:
            InputError: a name is not one line of 1 to `LONGEST` characters, or the file is full or cannot be read or
                written.
        """
        for name in (query, item):
            if not name.strip() or len(name) > LONGEST or name.splitlines() != [name]:
                raise InputError(
                    f"{name[:80]!r} cannot be the name of a query or item; pass one line of 1 to {LONGEST} characters"
                )
        with self._locked():
            grades = self._read()
            grades[query, item] = "1" if fits else "0"
            if len(grades) > MOST:
                raise InputError(
                    f"{self.path} contains {MOST} judgments already; move the file, so that a new file is written"
                )
            rows = [HEADER, *([*pair, grade] for pair, grade in grades.items())]
            with atomic_path(self.path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
                csv.writer(file, lineterminator="\n").writerows(rows)
            return len(grades)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Lock the file against other threads and other servers of the index."""
        lock = self.path.with_name(f"{self.path.name}.lock")
        refuse_links(self.path, lock)
        with self._lock:
            try:
                handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
            except OSError as error:
                raise InputError(
                    f"{lock} cannot be written ({error.strerror}); check the permissions of the file and its folder"
                ) from error
            try:
                with locked(handle, lock.with_suffix(".host"), f"{lock} is in use; try again", wait=True):
                    yield
            finally:
                os.close(handle)

    def _read(self) -> dict[tuple[str, str], str]:
        if not self.path.exists():
            return {}
        try:
            head, *rows = csv.reader(read_bytes(self.path).decode().splitlines())
            grades = {(query, item): grade for query, item, grade in rows}
        except (OSError, ValueError, csv.Error) as error:
            raise InputError(
                f"{self.path} cannot be read as judgments ({error}); move the file, so that a new file is written"
            ) from error
        if head != HEADER:
            raise InputError(
                f"{self.path} does not begin with {','.join(HEADER)}; move the file, so that a new file is written"
            )
        return grades
