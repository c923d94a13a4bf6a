"""What an index holds, read in a transaction: facts, items, vectors."""

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from aadml.comparison.features import Modality
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import JsonObject
from aadml.search.store import Item, WrittenCells, columns_in

_BLOCK = 4096  # vectors read at a time


@dataclass(frozen=True)
class Vectors:
    """The vectors of one modality.

    Attributes:
        numbers: (n,) of the items, in the order of their ids.
        values: (n, d) float32.
    """

    numbers: NDArray[np.int64]
    values: NDArray[np.float32]


def meta_of(database: sqlite3.Connection) -> dict[str, JsonObject]:
    """Read all facts.

    Raises:
        InputError: they are damaged.
    """
    try:
        return {name: json.loads(value) for name, value in database.execute("SELECT name, value FROM meta")}
    except (TypeError, ValueError) as error:
        raise InputError(f"the facts of this index are damaged ({error})") from error


def labels_of(database: sqlite3.Connection) -> dict[int, str]:
    """Read the label of each item by its number."""
    return dict(database.execute("SELECT number, label FROM item"))


def digests_of(database: sqlite3.Connection) -> dict[str, bytes]:
    """Read the digest of each item by its id."""
    return dict(database.execute("SELECT id, digest FROM item"))


def items_of(database: sqlite3.Connection, numbers: Iterable[int]) -> Iterator[Item]:
    """Read items by their numbers, in that order."""
    names = columns_in(database)
    for number in numbers:
        row = database.execute(
            "SELECT id, audio, visual, split, label FROM item WHERE number = ?", (number,)
        ).fetchone()
        if row is None:
            raise InputError(f"there is no clip number {number} in this index")
        media = {m: os.fsdecode(path) for m, path in zip(("audio", "visual"), row[1:3], strict=True) if path}
        further = database.execute("SELECT * FROM extra WHERE number = ?", (number,)).fetchone() if names else (number,)
        columns = {name: "" if value is None else str(value) for name, value in zip(names, further[1:], strict=True)}
        yield Item(row[0], media, row[3], row[4], columns)


def cells_of(database: sqlite3.Connection) -> dict[str, WrittenCells]:
    """Read the cells of every modality that has any."""
    if database.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'cells'").fetchone() is None:
        return {}
    rows = database.execute("SELECT modality, facts, centers, own FROM cells")
    return {modality: (json.loads(facts), centers, own) for modality, facts, centers, own in rows}


def vectors_of(database: sqlite3.Connection, modality: Modality) -> Vectors | None:
    """Read the vectors of a modality, in the order of the items' ids; None where there are none."""
    table = f"vector_{modality}"
    first = database.execute(f"SELECT length(content) FROM {table} LIMIT 1").fetchone()
    if first is None:
        return None
    query = f"SELECT number FROM item WHERE number IN (SELECT number FROM {table}) ORDER BY id"
    numbers = np.fromiter((row[0] for row in database.execute(query)), dtype=np.int64)
    damaged = f"the {modality} vectors of this index are damaged: they are not of one length"
    if not first[0] or first[0] % 4:
        raise InputError(damaged)
    values = np.empty((len(numbers), first[0] // 4), dtype=np.float32)
    order = np.argsort(numbers)
    begin, rows = 0, database.execute(f"SELECT content FROM {table} ORDER BY number")
    while block := rows.fetchmany(_BLOCK):
        whole = all(isinstance(row[0], bytes) and len(row[0]) == first[0] for row in block)
        if not whole or begin + len(block) > len(order):
            raise InputError(damaged)
        matrix = np.frombuffer(b"".join(row[0] for row in block), dtype="<f4").reshape(len(block), -1)
        values[order[begin : begin + len(block)]] = matrix
        begin += len(block)
    return Vectors(numbers, values)
