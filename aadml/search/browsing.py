"""Pages of the clips of an index, with counts of the values of columns."""

import json
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aadml.feature_extraction.manifest import LABELS_SEPARATOR
from aadml.search.items import items_of
from aadml.search.store import CAPTION_COLUMNS, TEXT_OF, Item, columns_in, quoted, stored_columns, tables_of

MOST_CLASSES, MOST_VALUES = 400, 40
"""Largest number of classes whose counts are shown, and of values of another column that are counted."""

_TIMES = ("start", "end")
_EXAMPLES = 3
_STRIDE, _ROOM = 40_503, 65_521  # constants of the mixed order, since neighboring numbers often have the same class


@dataclass(frozen=True)
class Browsed:
    """Page of the clips of an index.

    Attributes:
        total: number of clips that meet the condition.
        clips: numbers and clips of the page, in a fixed shuffled order.
        counts: column -> value -> number of clips that meet the condition, most frequent first. The values of `label`
            are classes: "a|b" counts for a and for b. Empty values, all but the most frequent classes, columns of
            captions or times, and other columns with many values are left out.
        classes: number of classes of the clips that meet the condition.
        examples: at most three clips with their numbers, of different classes if there are several classes.
    """

    total: int
    clips: tuple[tuple[int, Item], ...]
    counts: Mapping[str, Mapping[str, int]]
    classes: int
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
    tables = tables_of(database) if conditions else "item"  # a join takes as long as the counts
    values: tuple[str, ...] = ()
    if numbers is not None:
        conditions.append("number IN (SELECT value FROM json_each(?))")
        values = (json.dumps(numbers),)
    condition = f"WHERE {' AND '.join(conditions) or 1}"
    source = f"FROM {tables} {condition}"
    (total,) = database.execute(f"SELECT count(*) {source}", values).fetchone()
    mixed = f"SELECT number {source} ORDER BY number * {_STRIDE} % {_ROOM}, number LIMIT ? OFFSET ?"
    chosen = [row[0] for row in database.execute(mixed, (*values, limit, offset))]
    frequent, classes, examples = _classes(database, source, values)
    if len(examples) == 1:  # no classes
        examples = chosen[:_EXAMPLES]
    items = [tuple(zip(some, items_of(database, some), strict=True)) for some in (chosen, examples)]
    counts = {"label": frequent} if frequent else {}
    return Browsed(total, items[0], {**counts, **_counts(database, tables, condition, values)}, classes, items[1])


def _classes(
    database: sqlite3.Connection, source: str, values: tuple[str, ...]
) -> tuple[dict[str, int], int, list[int]]:
    """Count the clips of the most frequent classes, in descending order, and the classes.

    The last result is the numbers of clips with the most frequent labels.
    """
    of_labels = f"max(instr(label, '{LABELS_SEPARATOR}')), count(nullif(label, ''))"
    query = f"SELECT {of_labels} FROM (SELECT DISTINCT label {source})"
    joins, classes = database.execute(query, values).fetchone()
    most = -1 if joins else MOST_CLASSES + 1  # one label may be empty
    query = f"SELECT label, count(*), min(number) {source} GROUP BY label ORDER BY 2 DESC, label LIMIT {most}"
    groups = database.execute(query, values).fetchall()
    counts: Counter[str] = Counter()
    for label, count, _ in groups:
        for name in {*str(label).split(LABELS_SEPARATOR)} - {""}:
            counts[name] += count
    frequent = dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MOST_CLASSES])
    return frequent, len(counts) if joins else classes, [number for *_, number in groups[:_EXAMPLES]]


def _counts(
    database: sqlite3.Connection, tables: str, condition: str, values: tuple[str, ...]
) -> dict[str, dict[str, int]]:
    """Count the values of each column that has few values and does not contain classes, captions or times."""
    counts, stored = {}, stored_columns(database)
    for column in ("split", *columns_in(database)):
        if column in (*CAPTION_COLUMNS, *_TIMES):
            continue
        by, text = quoted(column), TEXT_OF + column
        value = f"min({quoted(text)})" if text in stored else by
        groups = f"FROM {tables if column == 'split' else 'extra'} {condition} GROUP BY {by}"
        query = f"SELECT {value}, count(*) {groups} ORDER BY 2 DESC, {by} LIMIT {MOST_VALUES + 1}"
        rows = database.execute(query, values).fetchall()
        shown = {str(value): count for value, count in rows if value not in (None, "")}
        if shown and len(rows) <= MOST_VALUES:
            counts[column] = shown
    return counts
