"""Checksums of the content of an index, written in the transaction of each change.

The table `checksum` stores one SHA-256 for each block of 256 items, vectors or points of a map. The moments of each
item in each modality are a separate block with one SHA-256. One more SHA-256 covers the metadata: schema, `meta`,
numbers of blocks, and a table `cells` of earlier versions. Metadata and vectors are verified at the opening of an
index. Blocks of other content are verified before any use of their rows. An index of version 1 has no checksums and
is not verified.
"""

import hashlib
import re
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.feature_file.names import MODALITIES

SCHEMA = (
    "CREATE TABLE checksum (part TEXT, block INTEGER, value BLOB NOT NULL, PRIMARY KEY (part, block)) WITHOUT ROWID"
)
FIRST_VERSION = 2
"""First version of an index with checksums."""

_FACTS = "facts"
_ROWS = 256  # consecutive numbers in a block of items or vectors
ITEMS = ("item", "extra")
"""Tables of the items."""
_VECTORS = tuple(f"vector_{name}" for name in MODALITIES)
_MOMENTS = tuple(f"moment_{name}" for name in MODALITIES)
_MAPS = tuple(f"map_{name}" for name in MODALITIES)
_TABLES = (*ITEMS, *_VECTORS, *_MOMENTS, *_MAPS)

_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_CALL = re.compile(r"quoted\s*\(")
_WORD = re.compile(
    "create|table|index|on|integer|text|numeric|blob|primary|key|not|null|unique|without|rowid|quoted|meta|name|value|item"
    "|item_label|number|id|split|label|audio|visual|digest|checksum|part|block|content|times|vector|cells|modality|facts"
    r"|centers|own|extra|extra_\d+|(vector|moment|map)_[a-z]+"
    "|sqlite_stat[14]|tbl|idx|stat|neq|nlt|ndlt|sample"  # statistics that the statement ANALYZE adds
)


def matrix_of(blobs: Sequence[object], modality: str) -> NDArray[np.float32]:
    """Return n stored vectors of d float32 values as a matrix (n, d), which cannot be written.

    Raises:
        sqlite3.DatabaseError: a stored value is not bytes, or the lengths of the values differ or are not multiples
            of 4.
    """
    content = [blob for blob in blobs if isinstance(blob, bytes)]
    if len(content) != len(blobs) or len({*map(len, content)}) > 1 or any(len(blob) % 4 for blob in content[:1]):
        raise damage(f"the {modality} vectors")
    return np.frombuffer(b"".join(content), dtype="<f4").reshape(len(content), -1)


def check_schema(database: sqlite3.Connection) -> None:
    """Check that a database has only plain tables, and indexes of the columns of these tables.

    Unquoted names must be names that aadml uses. Views, triggers, virtual tables, checks and computed values are
    refused, because SQLite would run the possibly endless statements in their definitions.

    Raises:
        sqlite3.DatabaseError: the schema contains a statement or a name that is not allowed.
    """
    for name, statement in database.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"):
        text = _QUOTED.sub(" quoted ", str(statement).lower())
        if _CALL.search(text) or not all(map(_WORD.fullmatch, re.findall(r"[^\s(),]+", text))):
            raise damage(f"'{name:.80}' is not a plain table")


def has_checksums(database: sqlite3.Connection) -> bool:
    """Return whether an index has checksums.

    Raises:
        sqlite3.DatabaseError: the tables of the index do not match its version.
    """
    is_new = int(database.execute("PRAGMA user_version").fetchone()[0]) >= FIRST_VERSION
    if is_new != has_table(database, "checksum"):
        raise damage("its version")
    return is_new


class BlockChecks:
    """Verification of some tables of one state of an index. Each block is verified once.

    A transaction that writes verifies the blocks of an item before it adds or removes the item, and seals them at its
    end.

    Args:
        database: the index, in a transaction.
        tables: names of the tables; by default all tables with items, vectors, moments or points of a map.
    """

    def __init__(self, database: sqlite3.Connection, tables: Sequence[str] = _TABLES) -> None:
        self._database = database
        self._verified: dict[str, set[int]] = {part: set() for part in _parts(database, tables)}

    def check(self, numbers: Collection[int]) -> None:
        """Verify the blocks of some items.

        Raises:
            sqlite3.DatabaseError: a block is damaged.
        """
        for part, verified in self._verified.items():
            if blocks := {number // _length(part) for number in numbers} - verified:
                _exhaust(verified_blocks(self._database, part, blocks))
                verified |= blocks

    def check_all(self) -> None:
        """Verify all rows of the tables, and their SQL indexes.

        Raises:
            sqlite3.DatabaseError: the tables or their SQL indexes are damaged.
        """
        for table in self._verified:
            if self._database.execute(f"PRAGMA integrity_check({table})").fetchone()[0] != "ok":
                raise damage(f"the table {table}")
            _exhaust(verified_rows(self._database, table))
        self._verified = {}  # nothing is left to verify

    def seal(self) -> None:
        """Write the checksums of the verified blocks, and remove the checksums of blocks that are now empty."""
        for part, blocks in self._verified.items():
            for block in sorted(blocks):
                rows = _rows_of(self._database, part, block)
                if rows:
                    _write(self._database, part, block, _digest(rows))
                else:
                    self._database.execute("DELETE FROM checksum WHERE part = ? AND block = ?", (part, block))


def forget(database: sqlite3.Connection, part: str) -> None:
    """Remove the checksums of a table that was dropped."""
    if has_checksums(database):
        database.execute("DELETE FROM checksum WHERE part = ?", (part,))


def seal_table(database: sqlite3.Connection, part: str) -> None:
    """Write the checksums of a table that was filled in this transaction."""
    blocks = database.execute(f"SELECT DISTINCT number / {_ROWS} FROM {part}").fetchall()
    for (block,) in blocks if has_checksums(database) else ():
        _write(database, part, block, _digest(_rows_of(database, part, block)))


def seal_facts(database: sqlite3.Connection) -> None:
    """Write the checksum of the metadata. Call this function after all other changes of a transaction."""
    if has_checksums(database):
        _write(database, _FACTS, 0, _facts(database))


def check_facts(database: sqlite3.Connection) -> None:
    """Verify the metadata.

    Raises:
        sqlite3.DatabaseError: the metadata are damaged.
    """
    if has_checksums(database) and _recorded(database, _FACTS).get(0) != _facts(database):
        raise damage("the metadata")


def check_all(database: sqlite3.Connection) -> None:
    """Verify all checksums of an index, and the integrity of the database.

    Raises:
        sqlite3.DatabaseError: a part of the index is damaged.
    """
    check_facts(database)
    for part in _parts(database, _TABLES):
        _exhaust(verified_rows(database, part))
    problem = database.execute("PRAGMA integrity_check").fetchone()[0]
    if problem != "ok":
        raise damage(" ".join(problem.split()))


def verified_rows(database: sqlite3.Connection, part: str) -> Iterator[list[tuple[Any, ...]]]:
    """Yield the rows of a table in blocks, ordered by number; the number is the first column.

    The rows of an index without checksums are not verified.

    Raises:
        sqlite3.DatabaseError: the rows do not match the checksums of the table.
    """
    if not has_checksums(database):
        cursor = database.execute(f"SELECT * FROM {part} ORDER BY number")
        while rows := cursor.fetchmany(_ROWS):
            yield rows
        return
    count = 0
    for block, value in sorted(_recorded(database, part).items()):
        rows = _rows_of(database, part, block)
        if not rows or _digest(rows) != value:
            raise _block_damage(part, block)
        count += len(rows)
        yield rows
    if count != database.execute(f"SELECT count(*) FROM {part}").fetchone()[0]:
        raise damage(f"{part}, rows without a checksum")


def verified_blocks(database: sqlite3.Connection, part: str, blocks: Iterable[int]) -> Iterator[list[tuple[Any, ...]]]:
    """Yield the rows of each block, ordered by number.

    In a table of moments, a block contains the rows of one item. Use only the yielded rows of the table. If the
    search tree of the table is damaged, another statement may return different rows. The rows of an index without
    checksums are not verified.

    Raises:
        sqlite3.DatabaseError: a block does not match its checksum.
    """
    statement, verifies = "SELECT value FROM checksum WHERE part = ? AND block = ?", has_checksums(database)
    for block in blocks:
        rows = _rows_of(database, part, block)
        recorded = database.execute(statement, (part, block)).fetchone() if verifies else None
        if verifies and ((_digest(rows),) if rows else None) != recorded:
            raise _block_damage(part, block)
        yield rows


def _block_damage(part: str, block: int) -> sqlite3.DatabaseError:
    length = _length(part)
    numbers = f"number {block}" if length == 1 else f"numbers {block * length} to {(block + 1) * length - 1}"
    return damage(f"{part}, {numbers}")


def _rows_of(database: sqlite3.Connection, part: str, block: int) -> list[tuple[Any, ...]]:
    length = _length(part)
    statement = f"SELECT * FROM {part} WHERE number >= ? AND number < ? ORDER BY number"
    return database.execute(statement, (block * length, (block + 1) * length)).fetchall()


def _exhaust(verified: Iterator[object]) -> None:
    for _ in verified:
        pass


def _parts(database: sqlite3.Connection, tables: Sequence[str]) -> list[str]:
    return [table for table in tables if has_table(database, table)] if has_checksums(database) else []


def _write(database: sqlite3.Connection, part: str, block: int, value: bytes) -> None:
    database.execute("INSERT OR REPLACE INTO checksum VALUES (?, ?, ?)", (part, block, value))


def _length(part: str) -> int:
    return 1 if part in _MOMENTS else _ROWS


def _recorded(database: sqlite3.Connection, part: str) -> dict[int, bytes]:
    return dict(database.execute("SELECT block, value FROM checksum WHERE part = ?", (part,)))


def _facts(database: sqlite3.Connection) -> bytes:
    statements = [
        "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE name NOT GLOB 'sqlite_stat[14]' ORDER BY name",
        "SELECT * FROM meta ORDER BY name",
        f"SELECT part, count(*) FROM checksum WHERE part != '{_FACTS}' GROUP BY part ORDER BY part",
    ]
    if has_table(database, "cells"):
        statements.append("SELECT * FROM cells ORDER BY modality")
    return _digest([row for statement in statements for row in database.execute(statement)])


def _digest(rows: Sequence[Sequence[Any]]) -> bytes:
    """Return the SHA-256 of the Python text of rows.

    If every row ends with bytes, the text contains the lengths of the bytes in place of the bytes. The unchanged
    bytes of all rows follow this text.
    """
    blobs = [row[-1] for row in rows if isinstance(row[-1], bytes)]
    if len(blobs) < len(rows):
        return hashlib.sha256(ascii(rows).encode()).digest()
    if len(rows[0]) == 2:  # rows of vectors: the same text as below, in a tenth of the time
        values = f"[{', '.join([f'(({number!a},), {len(blob)})' for number, blob in rows])}]"
    else:
        values = ascii([(row[:-1], len(row[-1])) for row in rows])
    digest = hashlib.sha256(values.encode())
    for blob in blobs:  # joining the blobs takes as long as the checksum
        digest.update(blob)
    return digest.digest()


def has_table(database: sqlite3.Connection, name: str) -> bool:
    """Return whether an index has a table."""
    return database.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (name,)).fetchone() is not None


def damage(place: str) -> sqlite3.DatabaseError:
    """Return the error of a damaged part of an index."""
    return sqlite3.DatabaseError(f"it is damaged: {place}")
