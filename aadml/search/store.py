"""The index on disk: one SQLite file of items, their columns and their vectors; written in whole transactions."""

import fcntl
import json
import os
import re
import shutil
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote

import numpy as np
from numpy.typing import NDArray

from aadml.comparison.features import Modality
from aadml.feature_extraction.feature_file import MODALITIES
from aadml.feature_extraction.ground.atomic import atomic_path, remove_leftovers
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import JsonObject
from aadml.search import best_moment
from aadml.search.best_moment import MomentVectors, write_moments

APPLICATION, VERSION = 0x61614D58, 1
OWN_COLUMNS = ("number", "id", "split", "label", "audio", "visual", "digest", "rowid", "oid", "_rowid_")
"""Names that columns of a manifest cannot have here."""

Columns = Mapping[str, str]
"""Further column -> how SQL compares its values: TEXT or NUMERIC."""

WrittenCells = tuple[JsonObject, bytes, bytes]
"""Facts of cells, their centers (float32), and the cell of each item (int32), in the order of the items' ids."""

_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,12})?")
_WAIT = 30.0  # seconds that a transaction waits for another one
_MARKS = ("application_id", "user_version")
_SCHEMA = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE item (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, split TEXT NOT NULL, label TEXT NOT NULL, "
    "audio, visual, digest BLOB NOT NULL)",
    "CREATE INDEX item_label ON item (label)",
    *(f"CREATE TABLE vector_{name} (number INTEGER PRIMARY KEY, content BLOB NOT NULL)" for name in MODALITIES),
)


@dataclass(frozen=True)
class Item:
    """One clip of an index.

    Attributes:
        id: its name, unique in the index.
        media: modality -> where its file is, as written down: relative to the index if below its folder.
        split: `train`, `valid`, `test`, or empty.
        label: its class; empty where it has none.
        columns: further columns of its manifest.
    """

    id: str
    media: Mapping[str, str] = field(default_factory=dict)
    split: str = ""
    label: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Entry:
    """What is written of one clip.

    Attributes:
        item: the clip.
        digest: of everything it was made from; equal digests need no work.
        vectors: modality -> (d,) float32.
        moments: modality -> its vectors over time, where they are kept.
    """

    item: Item
    digest: bytes
    vectors: Mapping[Modality, NDArray[np.float32]]
    moments: Mapping[Modality, MomentVectors] = field(default_factory=dict)


def connect(path: Path) -> sqlite3.Connection:
    """Open an index.

    Raises:
        InputError: no file, no index, or one of a newer version.
    """
    if path.exists() and not path.is_file():
        raise InputError(f"{path}: is no file; an index is one")
    if not path.is_file():
        raise InputError(f"{path}: no such index; make one by `aadml index SOURCE -o {quote(str(path))}`")
    mode = "rw" if os.access(path, os.W_OK) and os.access(path.parent, os.W_OK) else "ro"
    lone = mode == "ro" and not path.with_name(f"{path.name}-wal").exists()
    address = f"{path.absolute().as_uri()}?mode={mode}{'&immutable=1' * lone}"
    with _said_of(path):
        database = sqlite3.connect(address, uri=True, timeout=_WAIT, isolation_level=None, check_same_thread=False)
        try:
            kind, version = (database.execute(f"PRAGMA {name}").fetchone()[0] for name in _MARKS)
        except BaseException:
            database.close()
            raise
    if kind != APPLICATION or version != VERSION:
        database.close()
        what = "is not an index of aadml" if kind != APPLICATION else f"is an index of version {version}, not {VERSION}"
        raise InputError(f"{path}: {what}")
    return database


@contextmanager
def reading(database: sqlite3.Connection, path: Path) -> Iterator[None]:
    """See one state of the index, whatever is written meanwhile."""
    with _said_of(path):
        database.execute("BEGIN")
        try:
            yield
        finally:
            with suppress(sqlite3.Error):
                database.execute("ROLLBACK")


@contextmanager
def _said_of(path: Path) -> Iterator[None]:
    """Say in one line what SQLite has to say of a file."""
    try:
        yield
    except MemoryError as error:
        raise InputError(f"{path}: cannot be read as an index (damaged, or larger than the memory)") from error
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
            raise InputError(f"{path}: cannot be written ({error}); choose another place or free some space") from error
        raise InputError(f"{path}: cannot be read as an index ({error})") from error


@contextmanager
def only_writer(path: Path) -> Iterator[Path]:
    """Be the only process that builds or updates an index; the lock goes with the process, however it ends.

    Yields:
        The folder `<index>.work`, in which the work is kept until it is done.

    Raises:
        InputError: another process is at it, or the folder cannot be made.
    """
    work = path.with_name(f"{path.name}.work")
    try:
        made = not work.exists()
        work.mkdir(parents=True, exist_ok=True)
        handle = os.open(work / "lock", os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise InputError(f"{work}: cannot be written ({error.strerror})") from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(handle)
        raise InputError(f"{path}: another process is updating this index; try again when it has finished") from error
    try:
        remove_leftovers(path)
        yield work
    except BaseException:
        if made and [one.name for one in work.iterdir()] == ["lock"]:
            shutil.rmtree(work, ignore_errors=True)  # nothing was begun
        raise
    finally:
        os.close(handle)


def create(path: Path, meta: Mapping[str, JsonObject], columns: Columns, entries: Iterable[Entry]) -> None:
    """Write a new index, whole or not at all."""
    with atomic_path(path) as temporary:
        temporary.unlink()
        with _said_of(path), closing(sqlite3.connect(temporary, isolation_level=None)) as database:
            database.execute("PRAGMA journal_mode = OFF")  # the rename is the transaction
            database.execute("PRAGMA synchronous = OFF")
            database.execute(f"PRAGMA application_id = {APPLICATION}")
            database.execute(f"PRAGMA user_version = {VERSION}")
            database.execute("BEGIN")
            for statement in _SCHEMA:
                database.execute(statement)
            _write(database, meta, columns, (), entries)
            database.execute("COMMIT")
            database.execute("PRAGMA journal_mode = WAL")


def change(
    path: Path,
    meta: Mapping[str, JsonObject],
    columns: Columns,
    removed: Iterable[str],
    entries: Iterable[Entry],
) -> None:
    """Write a change of an index in one transaction: readers see the state before it or the one after it.

    Args:
        path: of the index.
        meta: facts that are set.
        columns: further columns of all items; where they are others than before, `entries` names every item.
        removed: ids that are no longer there.
        entries: that are new, or take the place of those of the same id.
    """
    with closing(connect(path)) as database, _said_of(path):
        database.execute("BEGIN IMMEDIATE")
        try:
            _write(database, meta, columns, removed, entries)
            database.execute("COMMIT")
        except BaseException:
            if database.in_transaction:
                database.execute("ROLLBACK")
            raise


def _write(
    database: sqlite3.Connection,
    meta: Mapping[str, JsonObject],
    columns: Columns,
    removed: Iterable[str],
    entries: Iterable[Entry],
) -> None:
    if columns_in(database) != dict(columns):
        _renew_columns(database, columns)
    for statement in best_moment.SCHEMA:
        database.execute(statement)
    kept = [f"{kind}_{name}" for name in MODALITIES for kind in ("vector", "moment")]
    tables = ["item", *(["extra"] if columns else []), *kept]
    for name in removed:
        _remove(database, name, tables)
    for entry in entries:
        _remove(database, entry.item.id, tables)
        _insert(database, entry, columns)
    for name, value in meta.items():
        database.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, json.dumps(value)))


def _remove(database: sqlite3.Connection, name: str, tables: Sequence[str]) -> None:
    found = database.execute("SELECT number FROM item WHERE id = ?", (name,)).fetchone()
    for table in tables if found is not None else ():
        database.execute(f"DELETE FROM {table} WHERE number = ?", found)


def _insert(database: sqlite3.Connection, entry: Entry, columns: Columns) -> None:
    item = entry.item
    media = [_path(item.media[name]) if item.media.get(name) else None for name in ("audio", "visual")]
    row = (item.id, item.split, item.label, *media, entry.digest)
    statement = "INSERT INTO item (id, split, label, audio, visual, digest) VALUES (?, ?, ?, ?, ?, ?)"
    number = database.execute(statement, row).lastrowid
    if columns:
        empty = {"NUMERIC": None, "TEXT": ""}  # text would be larger than any number
        values = (number, *(item.columns[name] or empty[kind] for name, kind in columns.items()))
        database.execute(f"INSERT INTO extra VALUES ({', '.join('?' * len(values))})", values)
    for name, vector in entry.vectors.items():
        content = np.ascontiguousarray(vector, dtype="<f4").tobytes()
        database.execute(f"INSERT INTO vector_{name} VALUES (?, ?)", (number, content))
    assert number is not None
    write_moments(database, number, entry.moments)


def _path(name: str) -> str | bytes:
    """Give a path as text; as bytes where it is not UTF-8."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return os.fsencode(name)
    return name


def columns_in(database: sqlite3.Connection) -> dict[str, str]:
    """Say what further columns an index has, in their order."""
    return {row[1]: row[2] for row in database.execute("PRAGMA table_info(extra)") if row[1] != "number"}


def columns_of(values: Mapping[str, Sequence[str]]) -> Columns:
    """Say what columns are: NUMERIC, and compared as numbers, where every value there is is a plain number; else TEXT.

    Raises:
        InputError: a name that the index itself uses, or two that differ in case alone.
    """
    seen = {name: name for name in OWN_COLUMNS}
    for name in values:
        if name.lower() in seen:
            raise InputError(f"column '{name}': an index has a column '{seen[name.lower()]}' already; rename it")
        seen[name.lower()] = name
    there = {name: [*filter(None, column)] for name, column in values.items()}
    return {name: "NUMERIC" if own and all(map(_NUMBER.fullmatch, own)) else "TEXT" for name, own in there.items()}


def _renew_columns(database: sqlite3.Connection, columns: Columns) -> None:
    """Make the table of further columns anew, each with an index; all items are written again where it changes."""
    database.execute("DROP TABLE IF EXISTS extra")
    if columns:
        named = ", ".join(f"{quoted(name)} {kind}" for name, kind in columns.items())
        database.execute(f"CREATE TABLE extra (number INTEGER PRIMARY KEY, {named})")
        for place, name in enumerate(columns):
            database.execute(f"CREATE INDEX extra_{place} ON extra ({quoted(name)})")


def quoted(name: str) -> str:
    """Write any name of a column as SQL."""
    return '"' + name.replace('"', '""') + '"'


def set_meta(path: Path, meta: Mapping[str, JsonObject], cells: Mapping[Modality, WrittenCells] | None = None) -> None:
    """Write facts, in one transaction; with them the cells of the approximate search, where they are given."""
    with closing(connect(path)) as database, _said_of(path):
        database.execute("BEGIN IMMEDIATE")
        for name, value in meta.items():
            database.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, json.dumps(value)))
        if cells is not None:
            database.execute("DROP TABLE IF EXISTS cells")
            database.execute("CREATE TABLE cells (modality TEXT PRIMARY KEY, facts TEXT, centers BLOB, own BLOB)")
            for modality, (facts, centers, own) in cells.items():
                row = (modality, json.dumps(facts), centers, own)
                database.execute("INSERT INTO cells VALUES (?, ?, ?, ?)", row)
        database.execute("COMMIT")
