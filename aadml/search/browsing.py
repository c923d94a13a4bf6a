"""Views of a whole index: pages of clips, counts of the values of columns, and a map of the vectors."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aadml.search.exact_search import Gallery
from aadml.search.items import items_of, labels_of
from aadml.search.store import CAPTION_COLUMNS, Item, columns_in, quoted, tables_of

MOST_CLASSES, MOST_VALUES = 400, 40
"""Largest number of classes, and of values of another column, that are counted."""
MOST_POINTS = 10_000
"""Largest number of points of a map; of more items, a regular sample is shown."""

_TIMES = ("start", "end")
_EXAMPLES = 3
_STRIDE, _ROOM = 40_503, 65_521  # of the mixed order: neighboring numbers are often of one class


@dataclass(frozen=True)
class Browsed:
    """A page of the clips of an index.

    Attributes:
        total: number of clips that meet the condition.
        clips: numbers and clips of the page, in a fixed mixed order.
        counts: column -> value -> number of clips that meet the condition, most frequent first; columns with many
            values are left out.
        examples: three clips with their numbers, of different classes if there are classes.
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
    """Count the values of each column that has few values."""
    counts = {}
    for column in ("label", "split", *columns_in(database)):
        if column in (*CAPTION_COLUMNS, *_TIMES):
            continue
        most = MOST_CLASSES if column == "label" else MOST_VALUES
        query = f"SELECT {quoted(column)}, count(*) {source} GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT {most + 1}"
        rows = database.execute(query, values).fetchall()
        shown = {str(value): count for value, count in rows if value not in (None, "")}
        if shown and len(rows) <= most:
            counts[column] = shown
    return counts


@dataclass(frozen=True)
class VectorMap:
    """Map of the vectors of a modality.

    Attributes:
        numbers: (m,) numbers of the items.
        places: (m, 2) coordinates within 0..1.
        labels: m classes; "" for items without class.
    """

    numbers: NDArray[np.int64]
    places: NDArray[np.float64]
    labels: tuple[str, ...]


def vector_map(database: sqlite3.Connection, numbers: NDArray[np.int64], gallery: Gallery) -> VectorMap:
    """Compute the map of at most MOST_POINTS vectors."""
    step = -(-len(numbers) // MOST_POINTS)
    shown, labels = numbers[::step], labels_of(database)
    return VectorMap(shown, principal(gallery.vectors[::step]), tuple(labels[number] for number in shown.tolist()))


def principal(vectors: Tensor) -> NDArray[np.float64]:
    """Compute the two principal components (n, 2), within 0..1, of the directions of vectors (n, d)."""
    directions = torch.nn.functional.normalize(vectors.double(), dim=1)
    centered = directions - directions.mean(0)
    _, axes = torch.linalg.eigh(centered.T @ centered)
    places = torch.nn.functional.pad(centered @ axes[:, -2:].flip(1), (0, max(0, 2 - len(axes)))).numpy()
    low, high = places.min(0), places.max(0)
    return np.asarray((places - low) / np.where(high > low, high - low, 1.0))
