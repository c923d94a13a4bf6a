"""Filters: SQL conditions (WHERE) that can only read the columns of the items."""

import sqlite3
import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.ground.errors import InputError
from aadml.search.store import OWN_COLUMNS, columns_in, tables_of

Value = str | int | float | None

FUNCTIONS = frozenset(
    {
        *("abs", "coalesce", "glob", "hex", "ifnull", "iif", "instr", "length", "like", "lower", "ltrim", "max", "min"),
        *("nullif", "replace", "round", "rtrim", "substr", "trim", "typeof", "unicode", "upper"),
    }
)
"""Functions that a condition may call."""
LONGEST, SECONDS, STEPS, LARGEST, PATTERN = 2000, 5.0, 100, 100_000, 200
"""Limits of a condition: characters, seconds of processor time, steps of SQLite between two checks of the time, bytes
of a text that the condition reads or creates, and bytes of a pattern (a match cannot be interrupted)."""
SECONDS_PER_ITEM = 1e-6
"""Processor time that a condition may take for each item of an index; comparing a column takes a fifth of this time."""

_READ = {"item", "extra"}


def matching(
    database: sqlite3.Connection, where: str, parameters: Sequence[Value] = (), *, seconds: float = SECONDS
) -> NDArray[np.int64]:
    """Return the numbers (m,) of the items that meet a condition, in ascending order.

    Args:
        database: the index, in an open transaction.
        where: a condition such as `label = 'dog' AND seconds > 3`; each `?` is replaced by a parameter.
        parameters: values, which are never parsed as SQL.
        seconds: limit of processor time, in seconds. In a large index, the limit is SECONDS_PER_ITEM for each item.

    Raises:
        InputError: the condition is invalid, contains an unknown column or a forbidden function, or exceeds a
            limit.
    """
    if len(where) > LONGEST:
        raise InputError(
            f"where: the condition has {len(where)} characters; shorten the condition to at most {LONGEST}"
        )
    tables = tables_of(database)
    (items,) = database.execute("SELECT count(*) FROM item").fetchone()
    seconds = max(seconds, SECONDS_PER_ITEM * items)
    until = time.thread_time() + seconds
    largest = database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST)
    pattern = database.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, PATTERN)
    database.set_authorizer(_authorized)
    database.set_progress_handler(lambda: int(time.thread_time() > until), STEPS)
    try:
        # the line break ends a comment at the end of the condition
        rows = database.execute(f"SELECT number FROM {tables} WHERE ({where}\n)", tuple(parameters))
        numbers = np.fromiter((row[0] for row in rows), dtype=np.int64)
    except (sqlite3.Error, ValueError, TypeError, OverflowError) as error:
        raise InputError(f"where {where[:80]!r}: {_reason(database, error, seconds)}") from error
    finally:
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, largest)
        database.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, pattern)
        database.set_authorizer(None)
        database.set_progress_handler(None, STEPS)
    return np.sort(numbers)


def _authorized(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    allowed = (
        action == sqlite3.SQLITE_SELECT
        or (action == sqlite3.SQLITE_READ and first in _READ)
        or (action == sqlite3.SQLITE_FUNCTION and str(second).lower() in FUNCTIONS)
    )
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY


def _reason(database: sqlite3.Connection, error: Exception, seconds: float) -> str:
    reason = str(error)
    if reason.startswith("no such column"):
        return f"{reason}; choose from {', '.join(searchable_columns(database))}"
    if reason == "interrupted":
        return f"the condition takes longer than {seconds:.2g} s; simplify the condition"
    if reason == "string or blob too big":
        return f"the condition reads or creates a text of more than {LARGEST:,} bytes; simplify the condition"
    if reason.startswith(("access to", "not authorized")):
        return "the condition does more than read and compare columns; use only columns, values and comparisons"
    return f"the condition is invalid ({reason}); correct the condition"


def searchable_columns(database: sqlite3.Connection) -> list[str]:
    """Return the columns that describe the items, for use in conditions."""
    database.set_authorizer(None)
    return [*OWN_COLUMNS[1:6], *columns_in(database)]
