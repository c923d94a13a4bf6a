"""Checks against replacing a file of features or embeddings that has little in common with the new content."""

import os
from collections.abc import Iterable, Mapping

import h5py
import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.feature_file.reading import open_features
from aadml.feature_extraction.feature_file.rows import FeatureRows
from aadml.feature_extraction.foreign.hdf5 import is_numbers_or_text, open_hdf5
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.strings import as_text


def refuse_other_clips(
    path: str | os.PathLike[str], names: Iterable[str], source: str, kind: str = "feature file"
) -> None:
    """Raise InputError if `source` lacks more than half of the clips of a readable file at `path`.

    Args:
        path: output path.
        names: ids and recordings of the clips of `source`.
        source: origin of the new content, for the message.
        kind: kind of the file at `path`, for the message: a feature file or a file of embeddings.
    """
    try:
        with open_hdf5(path) as file:
            columns = [file[key] for key in ("id", "column/recording") if isinstance(file.get(key), h5py.Dataset)]
            values = [np.ravel(column[()] if is_numbers_or_text(column) else "").tolist() for column in columns]
            clips = [set(map(as_text, row)) for row in zip(*values, strict=False)]
    except InputError:  # no file, or a damaged file
        return
    known = set(names)
    shared = sum(not known.isdisjoint(clip) for clip in clips)
    if 2 * shared < len(clips):
        raise InputError(
            f"{path} shares {shared or 'none'} of its {len(clips)} clips with {source}, so this {kind} is not "
            "overwritten; choose another output, or remove this file"
        )


def refuse_other_vectors(
    path: str | os.PathLike[str], features: Mapping[str, NDArray[np.float32]], source: str
) -> None:
    """Raise InputError if a readable feature file at `path` contains clips, but no vector of `source`.

    Args:
        path: output path.
        features: modality -> (n, d), vectors of `source`; vectors of zeros are not compared.
        source: origin of the new content, for the message.
    """
    try:
        with open_features(path) as (content, rows):
            common = rows.keys() & features.keys()
            may_replace = not content.ids or any(_shares(rows[name].pooled, features[name]) for name in common)
    except InputError:  # no feature file, or a damaged file
        return
    if not may_replace:
        raise InputError(
            f"{path} shares no vector with {source}, so this feature file is not overwritten; choose another output, "
            "or remove this file"
        )


def _shares(rows: FeatureRows, values: NDArray[np.float32]) -> bool:
    vectors = _vectors(values)
    return any(not vectors.isdisjoint(_vectors(block)) for block in rows.blocks())


def _vectors(values: NDArray[np.float32]) -> set[bytes]:
    return {row.tobytes() for row in np.ascontiguousarray(values, dtype=np.float32) if row.any()}
