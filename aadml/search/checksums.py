"""Checksums of the content of an index, written in the transaction of each change.

The table `checksum` holds a SHA-256 for each block of 256 items and of their vectors, for the moments of each item, and
for the facts (schema, `meta`, cells, number of blocks). What a reader uses is compared with them. An index of version 1
has none: it is read unverified.
"""

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from aadml.feature_extraction.feature_file import MODALITIES

SCHEMA = (
    "CREATE TABLE checksum (part TEXT, block INTEGER, value BLOB NOT NULL, PRIMARY KEY (part, block)) WITHOUT ROWID"
)
FIRST_VERSION = 2
"""First version of an index with checksums."""

_FACTS = "facts"
_ROWS = 256  # numbers of a block of items or vectors
_ITEMS = ("item", "extra")
_VECTORS = tuple(f"vector_{name}" for name in MODALITIES)
_MOMENTS = tuple(f"moment_{name}" for name in MODALITIES)


def has_checksums(database: sqlite3.Connection) -> bool:
    """Return whether an index has checksums.

    Raises:
        sqlite3.DatabaseError: the version and the tables of the index contradict each other.
    """
    is_new = int(database.execute("PRAGMA user_version").fetchone()[0]) >= FIRST_VERSION
    if is_new != _has_table(database, "checksum"):
        raise _damage("its version")
    return is_new


def seal_items(database: sqlite3.Connection, numbers: Iterable[int]) -> None:
    """Write the checksums of all blocks that contain one of the items, which were added, changed or removed."""
    if not has_checksums(database):
        return
    touched = sorted(set(numbers))
    for part in _parts(database):
        length = _length(part)
        for block in sorted({number // length for number in touched}):
            statement = f"SELECT * FROM {part} WHERE number >= ? AND number < ? ORDER BY number"
            rows = database.execute(statement, (block * length, (block + 1) * length)).fetchall()
            if rows:
                _write(database, part, block, _digest(rows))
            else:
                database.execute("DELETE FROM checksum WHERE part = ? AND block = ?", (part, block))


def forget(database: sqlite3.Connection, part: str) -> None:
    """Remove the checksums of a table that was dropped."""
    if has_checksums(database):
        database.execute("DELETE FROM checksum WHERE part = ?", (part,))


def seal_facts(database: sqlite3.Connection) -> None:
    """Write the checksum of the facts, after all other changes of a transaction."""
    if has_checksums(database):
        _write(database, _FACTS, 0, _facts(database))


def check_items(database: sqlite3.Connection) -> None:
    """Verify facts and items, and the SQL indexes that filters use.

    Raises:
        sqlite3.DatabaseError: they are damaged.
    """
    if not has_checksums(database):
        return
    if _recorded(database, _FACTS).get(0) != _facts(database):
        raise _damage("its facts")
    for table in set(_ITEMS) & set(_parts(database)):
        if database.execute(f"PRAGMA integrity_check({table})").fetchone()[0] != "ok":
            raise _damage(f"the table {table}")
        for _ in verified_rows(database, table):
            pass


def check_all(database: sqlite3.Connection) -> None:
    """Verify everything.

    Raises:
        sqlite3.DatabaseError: something is damaged.
    """
    check_items(database)
    if has_checksums(database):
        for part in _parts(database):
            for _ in verified_rows(database, part):
                pass
    problem = database.execute("PRAGMA integrity_check").fetchone()[0]
    if problem != "ok":
        raise _damage(" ".join(problem.split()))


def verified_rows(database: sqlite3.Connection, part: str) -> Iterator[list[tuple[Any, ...]]]:
    """Yield the rows of a table in blocks, ordered by number; the number is the first column.

    Raises:
        sqlite3.DatabaseError: a block does not match its checksum, or is missing.
    """
    recorded = _recorded(database, part) if has_checksums(database) else None
    length = _length(part)
    rows = database.execute(f"SELECT * FROM {part} ORDER BY number")
    for block, members in groupby(rows, lambda row: int(row[0]) // length):
        content = list(members)
        if recorded is not None and recorded.pop(block, None) != _digest(content):
            raise _damage(f"{part}, numbers {block * length} to {(block + 1) * length - 1}")
        yield content
    if recorded:
        raise _damage(f"{part}, numbers from {min(recorded) * length}, which are missing")


def check_row(database: sqlite3.Connection, part: str, number: int, row: Sequence[Any] | None) -> None:
    """Verify a row of a table whose blocks hold one item each.

    Args:
        database: an index.
        part: name of the table.
        number: of the item.
        row: all columns; None if the table has none of this number.

    Raises:
        sqlite3.DatabaseError: the row is damaged or missing.
    """
    if has_checksums(database):
        statement = "SELECT value FROM checksum WHERE part = ? AND block = ?"
        recorded = database.execute(statement, (part, number)).fetchone()
        if (None if row is None else _digest([tuple(row)])) != (None if recorded is None else recorded[0]):
            raise _damage(f"{part}, number {number}")


def _parts(database: sqlite3.Connection) -> list[str]:
    return [part for part in (*_ITEMS, *_VECTORS, *_MOMENTS) if _has_table(database, part)]


def _write(database: sqlite3.Connection, part: str, block: int, value: bytes) -> None:
    database.execute("INSERT OR REPLACE INTO checksum VALUES (?, ?, ?)", (part, block, value))


def _length(part: str) -> int:
    return 1 if part in _MOMENTS else _ROWS


def _recorded(database: sqlite3.Connection, part: str) -> dict[int, bytes]:
    return dict(database.execute("SELECT block, value FROM checksum WHERE part = ?", (part,)))


def _facts(database: sqlite3.Connection) -> bytes:
    statements = [
        "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name",
        "SELECT * FROM meta ORDER BY name",
        f"SELECT part, count(*) FROM checksum WHERE part != '{_FACTS}' GROUP BY part ORDER BY part",
    ]
    if _has_table(database, "cells"):
        statements.append("SELECT * FROM cells ORDER BY modality")
    return _digest([row for statement in statements for row in database.execute(statement)])


def _digest(rows: Sequence[Sequence[Any]]) -> bytes:
    """Return the SHA-256 of rows; bytes in the last column count as they are, everything else as Python writes it."""
    blobs = [row[-1] for row in rows if isinstance(row[-1], bytes)]
    if len(blobs) < len(rows):
        return hashlib.sha256(ascii(rows).encode()).digest()
    values = ascii([(row[:-1], len(row[-1])) for row in rows])
    return hashlib.sha256(values.encode() + b"".join(blobs)).digest()


def _has_table(database: sqlite3.Connection, name: str) -> bool:
    return database.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (name,)).fetchone() is not None


def _damage(place: str) -> sqlite3.DatabaseError:
    return sqlite3.DatabaseError(f"it is damaged: {place}")
