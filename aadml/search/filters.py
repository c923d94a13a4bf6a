"""Filters: the condition of an SQL WHERE, which may read the columns of the items and do nothing else."""

import sqlite3
import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.ground.errors import InputError
from aadml.search.store import OWN_COLUMNS

Value = str | int | float | None

FUNCTIONS = frozenset(
    {
        *("abs", "coalesce", "glob", "hex", "ifnull", "iif", "instr", "length", "like", "lower", "ltrim", "max", "min"),
        *("nullif", "replace", "round", "rtrim", "substr", "trim", "typeof", "unicode", "upper"),
    }
)
"""What a condition may call."""
LONGEST, SECONDS, STEPS, LARGEST = 2000, 5.0, 100, 100_000
"""Characters of a condition, seconds of processor time that it may take, steps of SQLite between two readings of the
clock, and bytes of a text that a condition may read or make."""

_READ = {"item", "extra"}


def matching(
    database: sqlite3.Connection, where: str, parameters: Sequence[Value] = (), *, seconds: float = SECONDS
) -> NDArray[np.int64]:
    """Find the numbers of the items (m,) that meet a condition, ascending.

    Args:
        database: of the index, in a transaction that reads.
        where: as `label = 'dog' AND seconds > 3`; each `?` in it stands for a parameter.
        parameters: values, which are never read as SQL.
        seconds: of processor time that the condition may take.

    Raises:
        InputError: not a condition, an unknown column, anything but reading, or too long a time.
    """
    if len(where) > LONGEST:
        raise InputError(f"--where: {len(where)} characters given; at most {LONGEST} are possible")
    further = database.execute("SELECT 1 FROM sqlite_master WHERE name = 'extra'").fetchone() is not None
    tables = "item JOIN extra USING (number)" if further else "item"
    until = time.thread_time() + seconds
    largest = database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST)
    database.set_authorizer(_authorized)
    database.set_progress_handler(lambda: int(time.thread_time() > until), STEPS)
    try:
        # the condition ends with its line, so that a comment in it ends there too
        query = f"SELECT number FROM {tables} WHERE number IN (SELECT number FROM {tables} WHERE ({where}\n))"
        found = np.fromiter((row[0] for row in database.execute(query, tuple(parameters))), dtype=np.int64)
    except (sqlite3.Error, ValueError, TypeError, OverflowError) as error:
        raise InputError(f"--where {where!r}: {_said(database, error, seconds)}") from error
    finally:
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, largest)
        database.set_authorizer(None)
        database.set_progress_handler(None, STEPS)
    return np.sort(found)


def _authorized(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    allowed = (
        action == sqlite3.SQLITE_SELECT
        or (action == sqlite3.SQLITE_READ and first in _READ)
        or (action == sqlite3.SQLITE_FUNCTION and str(second).lower() in FUNCTIONS)
    )
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY


def _said(database: sqlite3.Connection, error: Exception, seconds: float) -> str:
    said = str(error)
    if said.startswith("no such column"):
        return f"{said}; there are {', '.join(columns_to_ask(database))}"
    if said == "interrupted":
        return f"the condition takes longer than {seconds:g} s; simplify it"
    if said == "string or blob too big":
        return f"the condition reads or makes a text of more than {LARGEST:,} bytes; simplify it"
    if said.startswith(("access to", "not authorized")):
        return "the condition may only read and compare columns"
    return said


def columns_to_ask(database: sqlite3.Connection) -> list[str]:
    """Name the columns that a condition may use."""
    database.set_authorizer(None)
    further = [row[1] for row in database.execute("PRAGMA table_info(extra)") if row[1] != "number"]
    return [*OWN_COLUMNS[1:6], *further]
