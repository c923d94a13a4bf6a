"""Readers of the items and vectors of an index. The caller opens the transaction."""

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import numpy as np
import torch
from numpy.typing import NDArray

from aadml.comparison.features import Modality
from aadml.feature_extraction.feature_file.names import MODALITIES
from aadml.feature_extraction.ground.errors import InputError
from aadml.retrieval.exact_search import Gallery
from aadml.retrieval.scores import SIMILARITIES
from aadml.search.checksums import damage, matrix_of, verified_rows
from aadml.search.store import CAPTION_COLUMNS, TEXT_OF, Item, quoted, stored_columns, tables_of

Galleries = dict[Modality, tuple[NDArray[np.int64], Gallery]]
"""Modality -> numbers of the items in the order of their ids (n,), and their vectors."""


def labels_of(database: sqlite3.Connection) -> dict[int, str]:
    """Read the labels of the items by number.

    Raises:
        sqlite3.DatabaseError: a label is not a text.
    """
    labels = dict(database.execute("SELECT number, label FROM item"))
    if not all(isinstance(label, str) for label in labels.values()):
        raise damage("the labels of the items")
    return labels


def items_of(database: sqlite3.Connection, numbers: Iterable[int]) -> Iterator[Item]:
    """Read items in the order of `numbers`.

    Raises:
        InputError: the index lacks an item with one of the numbers.
        sqlite3.DatabaseError: a value of an item has a wrong type.
    """
    names = stored_columns(database)
    selected = ", ".join(["id, audio, visual, split, label", *map(quoted, names)])
    query = f"SELECT {selected} FROM {tables_of(database)} WHERE number = ?"
    for number in numbers:
        row = database.execute(query, (number,)).fetchone()
        if row is None:
            raise InputError(f"clip number {number} is not in this index; pass the number of a hit")
        if not _is_item(row) or not _is_caption_number(dict(zip(names, row[5:], strict=True)).get(CAPTION_COLUMNS[1])):
            raise damage(f"item {number}")
        media = {m: os.fsdecode(path) for m, path in zip(("audio", "visual"), row[1:3], strict=True) if path}
        columns = {name: "" if value is None else str(value) for name, value in zip(names, row[5:], strict=True)}
        columns |= {name.removeprefix(TEXT_OF): columns.pop(name) for name in names if name.startswith(TEXT_OF)}
        yield Item(row[0], media, row[3], row[4], columns)


def _is_item(row: Sequence[object]) -> bool:
    """Return whether the values of an item have the right types.

    The values are id, audio, visual, split, label and further columns, in this order.
    """
    name, audio, visual, split, label, *columns = row
    return (
        all(isinstance(value, str) for value in (name, split, label))
        and all(value is None or isinstance(value, str | bytes) for value in (audio, visual))
        and all(value is None or isinstance(value, str | int | float) for value in columns)
    )


def _is_caption_number(value: object) -> bool:
    return value in (None, "") or (str(value).isdecimal() and len(str(value)) <= 18)


def galleries_of(database: sqlite3.Connection, similarity: str) -> Galleries:
    """Read the vectors of every modality of an index.

    Raises:
        sqlite3.DatabaseError: the vectors are damaged, or the similarity is unknown.
    """
    if similarity not in SIMILARITIES:
        raise damage(f"the similarity '{similarity:.40}' is unknown")
    vectors = {m: vectors_of(database, m) for m in MODALITIES}
    return {m: (v[0], Gallery(torch.from_numpy(v[1]), similarity)) for m, v in vectors.items() if v is not None}


def vectors_of(
    database: sqlite3.Connection, modality: Modality
) -> tuple[NDArray[np.int64], NDArray[np.float32]] | None:
    """Read the vectors of a modality in the order of the items' ids.

    Returns:
        Numbers (n,) and vectors (n, d); None if the modality has no vectors.

    Raises:
        sqlite3.DatabaseError: the vectors are damaged.
    """
    table = f"vector_{modality}"
    stored = _numbers(database, f"SELECT number FROM {table}")
    if not len(stored):
        return None
    numbers = _numbers(database, "SELECT number FROM item ORDER BY id")
    numbers = numbers[np.isin(numbers, stored)]
    order, begin = np.argsort(numbers), 0
    values = np.empty((0, 0), dtype=np.float32)
    for rows in verified_rows(database, table):
        vectors, places = matrix_of([row[1] for row in rows], modality), order[begin : begin + len(rows)]
        if not begin:
            values = np.empty((len(numbers), vectors.shape[1]), dtype=np.float32)
        if vectors.shape[1] != values.shape[1] or numbers[places].tolist() != [row[0] for row in rows]:
            raise damage(f"the {modality} vectors")
        if not np.isfinite(vectors).all():
            raise damage(f"the vectors of {modality} contain NaN or infinity")
        values[places] = vectors
        begin += len(rows)
    if begin != len(numbers) or not values.size:
        raise damage(f"the {modality} vectors")
    return numbers, values


def _numbers(database: sqlite3.Connection, query: str) -> NDArray[np.int64]:
    try:
        return np.fromiter(chain.from_iterable(database.execute(query)), dtype=np.int64)
    except (TypeError, ValueError, OverflowError) as error:  # a table with another schema
        raise damage("the numbers of the items") from error
