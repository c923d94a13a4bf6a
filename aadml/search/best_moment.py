"""The best moment of a hit: where descriptions over time were kept, the one that fits the question best.

Each description is embedded as a clip of its own would be and scored by the index's similarity. A model that was
trained on means over time sees shorter stretches here than in training: the moment says where to begin to listen, and
its score is beside that of the clip.
"""

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aadml.comparison.features import Modality
from aadml.feature_extraction.feature_file import MODALITIES
from aadml.search.exact_search import Gallery

SCHEMA = tuple(
    f"CREATE TABLE IF NOT EXISTS moment_{name} (number INTEGER PRIMARY KEY, times BLOB NOT NULL, content BLOB NOT NULL)"
    for name in MODALITIES
)


@dataclass(frozen=True)
class MomentVectors:
    """The vectors over time of one modality of one clip.

    Attributes:
        times: (t,) seconds after the beginning of the file at which each begins.
        vectors: (t, d) float32.
    """

    times: NDArray[np.float64]
    vectors: NDArray[np.float32]


@dataclass(frozen=True)
class Moment:
    """Where a hit fits best.

    Attributes:
        seconds: after the beginning of its file.
        score: of this stretch alone, in the unit of the similarity.
    """

    seconds: float
    score: float


def best_moment(moments: MomentVectors | None, queries: Tensor, similarity: str) -> Moment | None:
    """Find the stretch that fits the queries (q, d) best, the first of equal ones; None where there is no choice."""
    if moments is None or len(moments.times) < 2:
        return None
    scores = Gallery(torch.from_numpy(moments.vectors), similarity).scores(queries)
    best = int(np.argmax(scores))
    return Moment(float(moments.times[best]), float(scores[best]))


def write_moments(database: sqlite3.Connection, number: int, found: Mapping[Modality, MomentVectors]) -> None:
    """Write the moments of an item."""
    for modality, one in found.items():
        blobs = (one.times.astype("<f8").tobytes(), np.ascontiguousarray(one.vectors, dtype="<f4").tobytes())
        database.execute(f"INSERT INTO moment_{modality} VALUES (?, ?, ?)", (number, *blobs))


def read_moments(database: sqlite3.Connection, modality: Modality, number: int) -> MomentVectors | None:
    """Read the moments of an item; None where it has none, or the index is older than they are."""
    if modality not in modalities_over_time(database):
        return None
    row = database.execute(f"SELECT times, content FROM moment_{modality} WHERE number = ?", (number,)).fetchone()
    if row is None:
        return None
    count, rest = divmod(len(row[0]), 8)
    if rest or not count or len(row[1]) % (4 * count):
        raise sqlite3.DatabaseError(f"the {modality} moments of clip number {number} are damaged")
    times, values = np.frombuffer(row[0], dtype="<f8"), np.frombuffer(row[1], dtype="<f4")
    return MomentVectors(times.astype(np.float64), values.astype(np.float32).reshape(count, -1))


def modalities_over_time(database: sqlite3.Connection) -> list[str]:
    """Name the modalities of which there is a table of moments."""
    found = {
        row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE name LIKE 'moment\\_%' ESCAPE '\\'")
    }
    return [name for name in MODALITIES if f"moment_{name}" in found]
