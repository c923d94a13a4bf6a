"""Pages of the clips of an index, with counts of the values of columns."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aadml.search.items import items_of
from aadml.search.store import CAPTION_COLUMNS, TEXT_OF, Item, columns_in, quoted, stored_columns, tables_of

MOST_CLASSES, MOST_VALUES = 400, 40
"""Largest number of classes, and of values of another column, that are counted."""

_TIMES = ("start", "end")
_EXAMPLES = 3
_STRIDE, _ROOM = 40_503, 65_521  # constants of the mixed order, since neighboring numbers often have the same class


@dataclass(frozen=True)
class Browsed:
    """Page of the clips of an index.

    Attributes:
        total: number of clips that meet the condition.
        clips: numbers and clips of the page, in a fixed shuffled order.
        counts: column -> value -> number of clips that meet the condition, most frequent first. Empty values,
            columns of captions or times, and columns with many values are left out.
        examples: at most three clips with their numbers, of different classes if there are several classes.
    """

    total: int
    clips: tuple[tuple[int, Item], ...]
    counts: Mapping[str, Mapping[str, int]]
    examples: tuple[tuple[int, Item], ...]


def browse(database: sqlite3.Connection, numbers: Sequence[int] | None, offset: int, limit: int) -> Browsed:
    """Read a page of clips.

    Args:
        database: the index, in an open transaction.
        numbers: numbers of the items that meet the condition; None for all.
        offset: number of clips before the page.
        limit: largest number of clips of the page.
    """
    conditions = [f"{CAPTION_COLUMNS[0]} = ''"] if CAPTION_COLUMNS[0] in columns_in(database) else []
    values: tuple[str, ...] = ()
    if numbers is not None:
        conditions.append("number IN (SELECT value FROM json_each(?))")
        values = (json.dumps(numbers),)
    source = f"FROM {tables_of(database)} WHERE {' AND '.join(conditions) or 1}"
    (total,) = database.execute(f"SELECT count(*) {source}", values).fetchone()
    mixed = f"SELECT number {source} ORDER BY number * {_STRIDE} % {_ROOM}, number LIMIT ? OFFSET ?"
    chosen = [row[0] for row in database.execute(mixed, (*values, limit, offset))]
    by_class = f"SELECT min(number) {source} GROUP BY label ORDER BY count(*) DESC, label LIMIT {_EXAMPLES}"
    examples = [row[0] for row in database.execute(by_class, values)]
    if len(examples) == 1:  # no classes
        examples = chosen[:_EXAMPLES]
    items = [tuple(zip(some, items_of(database, some), strict=True)) for some in (chosen, examples)]
    return Browsed(total, items[0], _counts(database, source, values), items[1])


def _counts(database: sqlite3.Connection, source: str, values: tuple[str, ...]) -> dict[str, dict[str, int]]:
    """Count the values of each column that has few values and does not contain captions or times."""
    counts, stored = {}, stored_columns(database)
    for column in ("label", "split", *columns_in(database)):
        if column in (*CAPTION_COLUMNS, *_TIMES):
            continue
        most = MOST_CLASSES if column == "label" else MOST_VALUES
        by, text = quoted(column), TEXT_OF + column
        value = f"min({quoted(text)})" if text in stored else by
        query = f"SELECT {value}, count(*) {source} GROUP BY {by} ORDER BY 2 DESC, {by} LIMIT {most + 1}"
        rows = database.execute(query, values).fetchall()
        shown = {str(value): count for value, count in rows if value not in (None, "")}
        if shown and len(rows) <= most:
            counts[column] = shown
    return counts
