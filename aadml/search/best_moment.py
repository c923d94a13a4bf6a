"""Best moment of a hit: the interval with the best score among the intervals of the clip.

Each interval is embedded as a clip and scored by the similarity of the index. A model that was trained on means over
time receives shorter intervals in a search than in training. The moment is therefore only a suggestion of where to
listen or look. The score of the moment is reported beside the score of the clip.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aadml.comparison.features import Modality
from aadml.feature_extraction.feature_file.names import MODALITIES
from aadml.retrieval.exact_search import Gallery
from aadml.search.checksums import damage, has_table, verified_blocks

SCHEMA = tuple(
    f"CREATE TABLE IF NOT EXISTS moment_{name} (number INTEGER PRIMARY KEY, times BLOB NOT NULL, content BLOB NOT NULL)"
    for name in MODALITIES
)


@dataclass(frozen=True)
class MomentVectors:
    """Vectors over time of one modality of one clip.

    Attributes:
        times: (t,) beginning of each interval, in seconds after the beginning of the clip: its segment or file.
        vectors: (t, d) float32.
    """

    times: NDArray[np.float64]
    vectors: NDArray[np.float32]


@dataclass(frozen=True)
class Moment:
    """Interval with the best score among the intervals of a hit.

    Attributes:
        seconds: beginning, in seconds after the beginning of the clip: its segment or file.
        score: score in the unit of the similarity.
    """

    seconds: float
    score: float


def best_moment(moments: MomentVectors | None, queries: Tensor, similarity: str) -> Moment | None:
    """Return the interval with the best mean score over the queries (q, d); None for fewer than two intervals.

    The first of several equally good intervals is returned.

    Raises:
        sqlite3.DatabaseError: the vectors over time have another width than the queries.
    """
    if moments is None or len(moments.times) < 2:
        return None
    if moments.vectors.shape[1] != queries.shape[1]:
        raise damage("the width of the vectors over time")
    scores = Gallery(torch.from_numpy(moments.vectors), similarity).scores(queries)
    best = int(np.argmax(scores))
    return Moment(float(moments.times[best]), float(scores[best]))


def write_moments(database: sqlite3.Connection, number: int, moments: Mapping[Modality, MomentVectors]) -> None:
    """Write the vectors over time of an item."""
    for modality, stretches in moments.items():
        times = stretches.times.astype("<f8").tobytes()
        vectors = np.ascontiguousarray(stretches.vectors, dtype="<f4").tobytes()
        database.execute(f"INSERT INTO moment_{modality} VALUES (?, ?, ?)", (number, times, vectors))


def read_moments(
    database: sqlite3.Connection, modality: Modality, numbers: Sequence[int]
) -> list[MomentVectors | None]:
    """Read the vectors over time of items in one modality; None for an item without such vectors.

    Raises:
        sqlite3.DatabaseError: the vectors are damaged.
    """
    table = f"moment_{modality}"
    if not has_table(database, table):
        return [None] * len(numbers)
    found = verified_blocks(database, table, numbers)
    return [_moments(rows, table, number) for number, rows in zip(numbers, found, strict=True)]


def _moments(rows: Sequence[tuple[int, bytes, bytes]], table: str, number: int) -> MomentVectors | None:
    if not rows:
        return None
    ((_, stored_times, content),) = rows
    is_valid = isinstance(stored_times, bytes) and isinstance(content, bytes)
    count, rest = divmod(len(stored_times), 8) if is_valid else (0, 0)
    if rest or not count or len(content) % (4 * count):
        raise damage(f"{table}, number {number}")
    times, values = np.frombuffer(stored_times, dtype="<f8"), np.frombuffer(content, dtype="<f4")
    if not (np.isfinite(times).all() and np.isfinite(values).all()):
        raise damage(f"{table}, number {number} contains NaN or infinity")
    return MomentVectors(times.astype(np.float64), values.astype(np.float32).reshape(count, -1))
