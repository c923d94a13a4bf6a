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
    frequent, classes = _classes(database, source, values)
    counts = {"label": frequent} if frequent else {}
    return Browsed(total, items[0], {**counts, **_counts(database, source, values)}, classes, items[1])


def _classes(database: sqlite3.Connection, source: str, values: tuple[str, ...]) -> tuple[dict[str, int], int]:
    """Count the clips of the most frequent classes, in descending order, and the classes."""
    labels = f"SELECT label, count(*) {source} GROUP BY label"
    query = f"SELECT max(instr(label, '{LABELS_SEPARATOR}')), sum(label != '') FROM ({labels})"
    joins, classes = database.execute(query, values).fetchone()
    if not joins:
        query = f"{labels} HAVING label != '' ORDER BY 2 DESC, label LIMIT {MOST_CLASSES}"
        return {str(label): count for label, count in database.execute(query, values)}, classes or 0
    counts: Counter[str] = Counter()
    for label, count in database.execute(labels, values):
        for name in {*str(label).split(LABELS_SEPARATOR)} - {""}:
            counts[name] += count
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MOST_CLASSES]), len(counts)


def _counts(database: sqlite3.Connection, source: str, values: tuple[str, ...]) -> dict[str, dict[str, int]]:
    """Count the values of each column that has few values and does not contain classes, captions or times."""
    counts, stored = {}, stored_columns(database)
    for column in ("split", *columns_in(database)):
        if column in (*CAPTION_COLUMNS, *_TIMES):
            continue
        by, text = quoted(column), TEXT_OF + column
        value = f"min({quoted(text)})" if text in stored else by
        query = f"SELECT {value}, count(*) {source} GROUP BY {by} ORDER BY 2 DESC, {by} LIMIT {MOST_VALUES + 1}"
        rows = database.execute(query, values).fetchall()
        shown = {str(value): count for value, count in rows if value not in (None, "")}
        if shown and len(rows) <= MOST_VALUES:
            counts[column] = shown
    return counts
