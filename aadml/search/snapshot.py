"""What of an index is in memory, all of one state of the file."""

import sqlite3
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from aadml.comparison.features import Modality
from aadml.feature_extraction.feature_file import MODALITIES
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import JsonObject, typed
from aadml.search.build_ivf import read_cells
from aadml.search.calibration import Calibration
from aadml.search.exact_search import Gallery
from aadml.search.filters import Value
from aadml.search.items import meta_of, vectors_of
from aadml.search.ivf import Cells
from aadml.search.validation import read_calibrations

Where = tuple[str, tuple[Value, ...]]
"""An SQL condition, and the values for each `?` in it."""


@dataclass
class State:
    """One state of an index.

    Attributes:
        generation: counts the changes of the file.
        meta: facts, by name.
        galleries: modality -> numbers of the items, and their vectors.
        calibrations: question -> what its scores mean.
        cells: of the approximate search, where there are any.
        filters: rows of a gallery that meet a condition, of the last conditions asked.
    """

    generation: int
    meta: dict[str, JsonObject]
    galleries: dict[Modality, tuple[NDArray[np.int64], Gallery]]
    calibrations: dict[tuple[tuple[Modality, ...], Modality], Calibration]
    cells: dict[Modality, Cells]
    filters: dict[tuple[Modality, Where], NDArray[np.int64]] = field(default_factory=dict)


def read_state(database: sqlite3.Connection, path: Path) -> State:
    """Read a whole index; a transaction must be open.

    Raises:
        InputError: it is damaged.
    """
    meta = meta_of(database)
    try:
        generation, similarity = typed(meta["state"], "generation", int), typed(meta["state"], "similarity", str)
    except KeyError:
        raise InputError(f"{path}: damaged: it does not say what it holds") from None
    found = {m: vectors_of(database, m) for m in MODALITIES}
    galleries = {m: (one.numbers, Gallery(torch.from_numpy(one.values), similarity)) for m, one in found.items() if one}
    calibrations = read_calibrations(meta.get("calibration", {}), path)
    counts = {m: len(numbers) for m, (numbers, _) in galleries.items()}
    return State(generation, meta, galleries, calibrations, read_cells(database, meta, counts, path))
