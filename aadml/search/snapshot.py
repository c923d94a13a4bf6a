"""The part of an index that is in memory, read from one state of the file."""

import sqlite3
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from aadml.comparison.features import Modality
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import JsonObject, typed
from aadml.search.calibration import Calibration
from aadml.search.filters import Value
from aadml.search.fit_calibration import CALIBRATION, read_calibrations
from aadml.search.items import Galleries, galleries_of, meta_of
from aadml.search.ivf import Cells, read_cells

Where = tuple[str, tuple[Value, ...]]
"""An SQL condition, and the values of its parameters."""


@dataclass
class State:
    """One state of an index.

    Attributes:
        generation: number of changes of the file.
        meta: facts by name.
        galleries: numbers and vectors of the items, by modality.
        calibrations: (modalities of the query, modality of the items) -> calibration.
        cells: of approximate search, by modality.
        filters: rows of a gallery that meet a condition, for the latest conditions.
    """

    generation: int
    meta: dict[str, JsonObject]
    galleries: Galleries
    calibrations: dict[tuple[tuple[Modality, ...], Modality], Calibration]
    cells: dict[Modality, Cells]
    filters: dict[tuple[Modality, Where], NDArray[np.int64]] = field(default_factory=dict)


def read_state(database: sqlite3.Connection, path: Path) -> State:
    """Read an index in an open transaction.

    Raises:
        InputError: the index is damaged.
    """
    meta = meta_of(database)
    try:
        generation, similarity = typed(meta["state"], "generation", int), typed(meta["state"], "similarity", str)
    except KeyError:
        raise InputError(f"{path}: damaged: the facts of the index are missing; build the index again") from None
    galleries = galleries_of(database, similarity)
    calibrations = read_calibrations(meta.get(CALIBRATION, {}), path)
    return State(generation, meta, galleries, calibrations, read_cells(database, meta, galleries, path))
