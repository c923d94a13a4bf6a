"""Connection to an index file, with a state that is read again after a change or replacement of the file."""

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Generic, TypeVar

from aadml.search.checksums import ITEMS, BlockChecks, check_facts
from aadml.search.store import connect, reading

State = TypeVar("State")


class LatestState(Generic[State]):
    """One connection to an index, for one thread at a time, and the state that was read through it.

    Args:
        path: path of the index.
        read: function that reads the state in an open transaction.

    Attributes:
        database: the connection; a new connection is opened after a change or replacement of the file.
        items: verification of the items.
        state: result of `read` for the latest transaction.
        lock: lock of the connection and the state.

    Raises:
        InputError: the file does not exist, or cannot be read as an index of this version.
    """

    def __init__(self, path: Path, read: Callable[[sqlite3.Connection], State]) -> None:
        self.lock = threading.RLock()
        self._path, self._read = path, read
        self._open()

    def _open(self) -> None:
        identity = _identity(self._path)
        database = connect(self._path)
        try:
            with reading(database, self._path):
                check_facts(database)
                items, state = BlockChecks(database, ITEMS), self._read(database)
        except BaseException:
            database.close()
            raise
        self.database, self.items, self.state, self._identity = database, items, state, identity

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Lock the connection, and yield it in a transaction. A changed or replaced file is read again.

        Raises:
            InputError: the file was removed, or cannot be read as an index of this version.
        """
        with self.lock:
            if _identity(self._path) != self._identity:
                before = self.database
                self._open()
                before.close()
            with reading(self.database, self._path):
                yield self.database


def _identity(path: Path) -> tuple[int, ...]:
    """Return the device, inode, size and time of change of a file; an empty tuple for a missing file."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return ()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
