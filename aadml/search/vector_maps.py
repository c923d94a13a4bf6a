"""2-D maps of the vectors of an index, computed and stored in the transaction of each change.

The table `map_<modality>` has the coordinates of an item in each row. A reader computes a map that an index of an
earlier version lacks.
"""

import sqlite3
from dataclasses import dataclass
from itertools import chain, islice

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aadml.comparison.features import Modality
from aadml.feature_extraction.feature_file.names import MODALITIES
from aadml.search.checksums import damage, has_table, matrix_of, seal_table, verified_rows
from aadml.search.items import labels_of

MOST_POINTS = 10_000
"""Largest number of points of a map; of more items, a map shows an evenly spaced part."""


@dataclass(frozen=True)
class VectorMap:
    """Map of the vectors of a modality.

    Attributes:
        numbers: (m,) numbers of the items, ascending.
        places: (m, 2) coordinates between 0 and 1.
        labels: m classes; "" for an item without a class.
    """

    numbers: NDArray[np.int64]
    places: NDArray[np.float32]
    labels: tuple[str, ...]


def map_index(database: sqlite3.Connection) -> None:
    """Compute the map of every modality with vectors, and write the maps in the open transaction of a change.

    Raises:
        sqlite3.DatabaseError: the vectors are damaged.
    """
    for modality in MODALITIES:
        if database.execute(f"SELECT 1 FROM vector_{modality}").fetchone():
            numbers, places = _computed(database, modality)
            table = f"map_{modality}"
            database.execute(f"CREATE TABLE {table} (number INTEGER PRIMARY KEY, content BLOB NOT NULL)")
            rows = zip(numbers.tolist(), (place.tobytes() for place in places), strict=True)
            database.executemany(f"INSERT INTO {table} VALUES (?, ?)", rows)
            seal_table(database, table)


def vector_map(database: sqlite3.Connection, modality: Modality) -> VectorMap:
    """Read the map of a modality, or compute the map if the index lacks it.

    Raises:
        sqlite3.DatabaseError: the map or the vectors are damaged.
    """
    is_stored = has_table(database, f"map_{modality}")
    numbers, places = _stored(database, modality) if is_stored else _computed(database, modality)
    labels = labels_of(database)
    return VectorMap(numbers, places, tuple(labels.get(number, "") for number in numbers.tolist()))


def _stored(database: sqlite3.Connection, modality: Modality) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    rows = [*chain.from_iterable(verified_rows(database, f"map_{modality}"))]
    if any(not isinstance(content, bytes) or len(content) != 8 for _, content in rows):
        raise damage(f"the map of {modality}")
    places = np.frombuffer(b"".join(content for _, content in rows), dtype="<f4")
    if not ((places >= 0) & (places <= 1)).all():
        raise damage(f"the map of {modality}")
    return np.asarray([number for number, _ in rows], dtype=np.int64), places.reshape(-1, 2)


def _computed(database: sqlite3.Connection, modality: Modality) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Compute the map of at most MOST_POINTS vectors; return the numbers (m,) and the coordinates (m, 2)."""
    (count,) = database.execute(f"SELECT count(*) FROM vector_{modality}").fetchone()
    step = -(-count // MOST_POINTS)
    every = chain.from_iterable(verified_rows(database, f"vector_{modality}"))
    rows = list(islice(every, 0, None, max(1, step)))
    vectors = matrix_of([content for _, content in rows], modality)
    if not np.isfinite(vectors).all():
        raise damage(f"the vectors of {modality} contain NaN or infinity")
    return np.asarray([number for number, _ in rows], dtype=np.int64), principal(torch.from_numpy(vectors.copy()))


def principal(vectors: Tensor) -> NDArray[np.float32]:
    """Return the coordinates (n, 2) of vectors (n, d) on the first two principal components of their directions.

    Each coordinate is scaled to the range from 0 to 1. A constant coordinate is 0.
    """
    directions = torch.nn.functional.normalize(vectors.double(), dim=1)
    centered = directions - directions.mean(0)
    _, axes = torch.linalg.eigh(centered.T @ centered)
    places = torch.nn.functional.pad(centered @ axes[:, -2:].flip(1), (0, max(0, 2 - len(axes)))).numpy()
    low, high = places.min(0), places.max(0)
    return np.asarray((places - low) / np.where(high > low, high - low, 1.0), dtype="<f4")
