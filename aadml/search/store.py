"""Index file: an SQLite database of items, their columns and their vectors, written in transactions."""

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
from aadml.feature_extraction.feature_file.names import MODALITIES
from aadml.feature_extraction.ground.atomic import atomic_path, refuse_links, remove_leftovers, target_of
from aadml.feature_extraction.ground.errors import DamagedFileError, InputError, InUseError
from aadml.feature_extraction.ground.locks import locked
from aadml.feature_extraction.ground.segment import WHOLE, Segment, segment_of
from aadml.search import best_moment, checksums
from aadml.search.best_moment import MomentVectors, write_moments
from aadml.search.facts import IndexFacts, write_facts

APPLICATION, VERSION = 0x61614D58, 2
SQLITE = b"SQLite format 3\0"
"""First bytes of an SQLite file."""
OWN_COLUMNS = ("number", "id", "split", "label", "audio", "visual", "digest", "rowid", "oid", "_rowid_")
"""Column names that the index reserves."""
CAPTION_COLUMNS = ("caption_of", "caption_number", "caption_text")
"""Columns of captions: the id of the clip, the number of the caption, and its words if known."""

TEXT_OF = "#text "
"""Prefix of the column with the texts of a column of numbers, such as "1.10", if a number does not show its text."""

Columns = Mapping[str, str]
"""Further column -> its SQL type: TEXT or NUMERIC."""

_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,12})?")
_BEGIN = "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN;"  # the rename makes the transaction atomic
_NEW = f"""
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {VERSION};
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE item (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, split TEXT NOT NULL, label TEXT NOT NULL, \
audio, visual, digest BLOB NOT NULL);
CREATE INDEX item_label ON item (label);
{checksums.SCHEMA};
{" ".join(f"CREATE TABLE vector_{m} (number INTEGER PRIMARY KEY, content BLOB NOT NULL);" for m in MODALITIES)}
"""


@dataclass(frozen=True)
class Caption:
    """Caption that is an item of an index.

    Attributes:
        clip: id of the clip.
        number: number of the caption among the captions of the clip, from 1.
        text: words; empty if the index does not store the words.
    """

    clip: str
    number: int
    text: str


@dataclass(frozen=True)
class Item:
    """One clip of an index, or one caption of a clip.

    Attributes:
        id: unique in the index.
        media: modality -> path of the file. The path of a file inside the folder of the index is relative to this
            folder.
        split: `train`, `valid`, `test`, or empty.
        label: class of the clip, or several classes joined by "|"; "" for a clip without a class.
        columns: name of a further column -> value.
    """

    id: str
    media: Mapping[str, str] = field(default_factory=dict)
    split: str = ""
    label: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)

    @property
    def segment(self) -> Segment:
        """Segment of the media from the columns `start` and `end`; the whole recording if no valid times are given."""
        try:
            return segment_of(self.columns)
        except ValueError:
            return WHOLE

    @property
    def caption(self) -> Caption | None:
        """The item as a caption; None if the item is a clip."""
        clip, number, text = (self.columns.get(name, "") for name in CAPTION_COLUMNS)
        return Caption(clip, int(number), text) if number else None

    @property
    def clip(self) -> str:
        """Id of the item if the item is a clip; otherwise, id of the clip of the caption."""
        return self.id if self.caption is None else self.caption.clip


@dataclass(frozen=True)
class Entry:
    """Item with its vectors, as written to an index.

    Attributes:
        item: the clip or caption.
        digest: SHA-256 of the id, split, label, media, columns and features of the item, and of the SQL types of
            all columns. The digest of a clip includes the features of its captions. An update does not rewrite an
            item whose stored digest equals the new digest.
        vectors: modality -> (d,) float32.
        moments: modality -> vectors over time, if the index has moments.
    """

    item: Item
    digest: bytes
    vectors: Mapping[Modality, NDArray[np.float32]]
    moments: Mapping[Modality, MomentVectors] = field(default_factory=dict)


def is_index(path: Path) -> bool:
    """Return whether the header of a file is that of an index, whose content may be damaged."""
    with path.open("rb") as file:
        head = file.read(72)
    return head.startswith(SQLITE) and head[68:] == APPLICATION.to_bytes(4)


def connect(path: Path) -> sqlite3.Connection:
    """Open an index.

    Raises:
        InputError: the file cannot be opened, is not an index, has an unknown version, contains more than plain tables
            and indexes, or an earlier version of aadml has left changes in a log beside the file.
    """
    if path.exists() and not path.is_file():
        raise InputError(f"{path} is not a file; pass the file of an index")
    if not path.is_file():
        raise InputError(f"{path} does not exist; build the index with `aadml index SOURCE -o {quote(str(path))}`")
    log = Path(f"{target_of(path)}-wal")
    with suppress(OSError), path.open("rb") as file:  # the log of an index whose header does not name a log is ignored
        if file.read(19)[18:] == b"\2" and log.stat().st_size:
            raise InputError(
                f"{log} contains changes of the index by an earlier version of aadml; open the index once with that "
                "version, or remove the index and build it again"
            )
    return _opened(path, path, "mode=ro&immutable=1")  # without locks, since a change replaces the file


def _opened(file: Path, path: Path, mode: str) -> sqlite3.Connection:
    """Open a file of an index; `path` is its name in messages."""
    with _errors_in_one_line(path):
        address = f"{file.absolute().as_uri()}?{mode}"
        database = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)
        try:
            (kind,) = database.execute("PRAGMA application_id").fetchone()
            (version,) = database.execute("PRAGMA user_version").fetchone()
            if kind != APPLICATION:
                raise InputError(f"{path} is not an index of aadml; pass a file of `aadml index`")
            if not 1 <= version <= VERSION:
                raise InputError(
                    f"{path} is an index of version {version}, but this aadml reads versions 1 and {VERSION}; "
                    "build the index again"
                )
            checksums.check_schema(database)
        except BaseException:
            database.close()
            raise
    return database


@contextmanager
def reading(database: sqlite3.Connection, path: Path) -> Iterator[None]:
    """Open a transaction that reads one state of the index.

    Raises:
        InputError: the index is damaged, or the database cannot be read.
    """
    with _errors_in_one_line(path):
        database.execute("BEGIN")
        try:
            yield
        finally:
            with suppress(sqlite3.Error):
                database.execute("ROLLBACK")


@contextmanager
def _errors_in_one_line(path: Path) -> Iterator[None]:
    """Convert an error of SQLite, memory, integer size or text encoding to InputError with a message of one line."""
    try:
        yield
    except MemoryError as error:
        raise DamagedFileError(
            f"{path} cannot be read as an index (the file is damaged or larger than the memory); build the index "
            "again, or use a machine with more memory"
        ) from error
    except UnicodeEncodeError as error:
        raise InputError(
            f"{path}: {error.object!r} contains characters that are not Unicode; remove these characters"
        ) from error
    except OverflowError as error:
        raise InputError(f"{path}: a number has more than 64 bits; pass a smaller number") from error
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
        if code == sqlite3.SQLITE_FULL:
            raise InputError(f"{path} cannot be written ({error}); free some space or choose another path") from error
        if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY):
            raise InputError(
                f"{path} cannot be opened or written ({error}); check the permissions of the file and its folder"
            ) from error
        raise DamagedFileError(f"{path} cannot be read as an index ({error}); build the index again") from error


def check_writable(path: Path) -> None:
    """Raise InputError if an index exists and is write-protected."""
    if path.exists() and not os.access(path, os.W_OK):
        raise InputError(f"{path} is write-protected; change its permissions, or pass another output")


@contextmanager
def writing(path: Path, *, is_new: bool = False) -> Iterator[sqlite3.Connection]:
    """Open a copy of an index, or a new index, for one transaction. The written file then replaces the index.

    Readers read the state before or after the transaction. An exception removes the written file. `only_writer`
    excludes other writers.

    Raises:
        InputError: the index is damaged, write-protected, or cannot be written.
    """
    check_writable(path)
    with atomic_path(path) as temporary, _errors_in_one_line(path):
        if not is_new:
            shutil.copyfile(path, temporary)
        with closing(sqlite3.connect(temporary) if is_new else _opened(temporary, path, "mode=rw")) as database:
            database.executescript(_BEGIN + _NEW * is_new)
            if not is_new:
                checksums.check_facts(database)
            yield database
            checksums.seal_facts(database)
            database.execute("COMMIT")
    for suffix in ("-wal", "-shm"):  # of an earlier version of aadml; SQLite would apply the log to the new file
        Path(f"{target_of(path)}{suffix}").unlink(missing_ok=True)


@contextmanager
def only_writer(path: Path) -> Iterator[Path]:
    """Lock an index against builds and updates by other processes, until the context or the process ends.

    A symbolic link and its target have the same lock, beside the target. At the end, the folder of the lock is removed
    if it contains only the lock.

    Yields:
        The folder `<index>.work` for unfinished work.

    Raises:
        InputError: another process holds the lock, or the folder is or contains a symbolic link, or cannot be created
            or written.
    """
    path = target_of(path)
    work = path.with_name(f"{path.name}.work")
    refuse_links(work)
    try:
        new_folders = [folder for folder in path.parents if not folder.exists()]
        work.mkdir(parents=True, exist_ok=True)
        handle = os.open(work / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    except OSError as error:
        raise InputError(f"{work} cannot be written ({error.strerror}); choose another path") from error
    busy = f"{path}: another process is updating this index; try again when that process has finished"
    try:
        with locked(handle, work / "lock.host", busy):
            if not os.fstat(handle).st_nlink:  # the process that held the lock has removed the file
                raise InUseError(busy)
            try:
                remove_leftovers(path)
                yield work
            finally:
                if work.is_dir() and {file.name for file in work.iterdir()} <= {"lock", "lock.host"}:
                    shutil.rmtree(work, ignore_errors=True)  # contains no work
                    with suppress(OSError):  # a folder with the index is kept
                        for folder in new_folders:
                            folder.rmdir()
    finally:
        os.close(handle)


def write_items(
    database: sqlite3.Connection,
    facts: IndexFacts,
    columns: Columns,
    removed: Iterable[str],
    entries: Iterable[Entry],
) -> None:
    """Write the items of a new index, or a change of the items, in an open transaction.

    Args:
        database: the index.
        facts: facts to write.
        columns: columns of the table `extra`, and their SQL types. If the names, types or order differ from those in
            the index, `entries` must contain every item.
        removed: ids of the items that are removed.
        entries: new items, and replacements of items of the same id.
    """
    if list(stored_columns(database).items()) != list(columns.items()):  # rows are written by position
        _renew_columns(database, columns)
    for statement in best_moment.SCHEMA:
        database.execute(statement)
    for modality in MODALITIES:  # stored maps show the vectors before the change
        database.execute(f"DROP TABLE IF EXISTS map_{modality}")
        checksums.forget(database, f"map_{modality}")
    by_modality = [f"{kind}_{name}" for name in MODALITIES for kind in ("vector", "moment")]
    tables = ["item", *(["extra"] if columns else []), *by_modality]
    blocks = checksums.BlockChecks(database)
    for name in removed:
        _remove(database, name, tables, blocks)
    for entry in entries:
        _remove(database, entry.item.id, tables, blocks)
        _insert(database, entry, columns, blocks)
    blocks.seal()
    write_facts(database, facts)


def _remove(database: sqlite3.Connection, name: str, tables: Sequence[str], blocks: checksums.BlockChecks) -> None:
    number = database.execute("SELECT number FROM item WHERE id = ?", (name,)).fetchone()
    if number is not None:
        blocks.check(number)
        for table in tables:
            database.execute(f"DELETE FROM {table} WHERE number = ?", number)


def _insert(database: sqlite3.Connection, entry: Entry, columns: Columns, blocks: checksums.BlockChecks) -> None:
    item = entry.item
    number = database.execute("SELECT coalesce(max(number), 0) + 1 FROM item").fetchone()[0]
    blocks.check([number])
    media = [_path(item.media[name]) if item.media.get(name) else None for name in ("audio", "visual")]
    row = (number, item.id, item.split, item.label, *media, entry.digest)
    database.execute(
        "INSERT INTO item (number, id, split, label, audio, visual, digest) VALUES (?, ?, ?, ?, ?, ?, ?)", row
    )
    if columns:
        empty = {"NUMERIC": None, "TEXT": ""}  # SQLite orders text above every number
        cells = {name: item.columns.get(name.removeprefix(TEXT_OF)) for name in columns}
        values = (number, *(cells[name] or empty[kind] for name, kind in columns.items()))
        database.execute(f"INSERT INTO extra VALUES ({', '.join('?' * len(values))})", values)
    for name, vector in entry.vectors.items():
        content = np.ascontiguousarray(vector, dtype="<f4").tobytes()
        database.execute(f"INSERT INTO vector_{name} VALUES (?, ?)", (number, content))
    write_moments(database, number, entry.moments)


def _path(name: str) -> str | bytes:
    """Return a path as text, or as bytes if it is not UTF-8."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return os.fsencode(name)
    return name


def columns_in(database: sqlite3.Connection) -> list[str]:
    """Return the names of the columns that the source of the items has besides id, class and split, in order."""
    return [name for name in stored_columns(database) if not name.startswith(TEXT_OF)]


def stored_columns(database: sqlite3.Connection) -> dict[str, str]:
    """Return the columns of the table `extra` and their SQL types, in order; empty if the index lacks the table."""
    return {row[1]: row[2] for row in database.execute("PRAGMA table_info(extra)") if row[1] != "number"}


def tables_of(database: sqlite3.Connection) -> str:
    """Return the SQL expression of the table of items, joined with the table `extra` of further columns.

    Without further columns, the table of items is not joined.
    """
    return "item JOIN extra USING (number)" if columns_in(database) else "item"


def columns_of(values: Mapping[str, Sequence[str]]) -> Columns:
    """Return the SQL types of columns: NUMERIC for columns of plain numbers, else TEXT.

    The columns for the clip and the words of a caption are always TEXT. A column of numbers with a text that the number
    does not show, such as "1.10", is followed by a column of the texts.

    Raises:
        InputError: a column has a reserved name, or two names differ only in case.
    """
    names: dict[str, str] = {}
    for name in values:
        is_reserved = name.lower() in OWN_COLUMNS or name.lower().startswith(TEXT_OF)
        if is_reserved or name.lower() in names:
            user = "the index" if is_reserved else f"the column '{names[name.lower()]}'"
            raise InputError(f"column '{name}': {user} uses this name too (case does not count); rename '{name}'")
        names[name.lower()] = name
    words = (CAPTION_COLUMNS[0], CAPTION_COLUMNS[2])
    columns: dict[str, str] = {}
    for name, column in values.items():
        texts = {*filter(None, column)}
        is_numeric = name not in words and bool(texts) and all(map(_NUMBER.fullmatch, texts))
        columns[name] = "NUMERIC" if is_numeric else "TEXT"
        if is_numeric and not all(map(_is_plain, texts)):
            columns[TEXT_OF + name] = "TEXT"
    return columns


def _is_plain(text: str) -> bool:
    number = float(text)
    return text == str(int(number) if number.is_integer() else number)


def _renew_columns(database: sqlite3.Connection, columns: Columns) -> None:
    """Create the table `extra` again, with an SQL index for each column; without columns, only drop the table."""
    database.execute("DROP TABLE IF EXISTS extra")
    checksums.forget(database, "extra")
    if columns:
        named = ", ".join(f"{quoted(name)} {kind}" for name, kind in columns.items())
        database.execute(f"CREATE TABLE extra (number INTEGER PRIMARY KEY, {named})")
        for place, name in enumerate(columns):
            database.execute(f"CREATE INDEX extra_{place} ON extra ({quoted(name)})")


def quoted(name: str) -> str:
    """Return a column name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'
