"""Checks against replacing a feature file that has no clip or vector in common with the new content."""

import os
from collections.abc import Callable, Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.feature_file.content import FeatureFile
from aadml.feature_extraction.feature_file.reading import open_features
from aadml.feature_extraction.feature_file.rows import ModalityRows
from aadml.feature_extraction.ground.errors import InputError


def refuse_other_clips(path: str | os.PathLike[str], names: Iterable[str], source: str) -> None:
    """Raise InputError if a readable feature file at `path` contains clips, but no clip or recording of `source`.

    Args:
        path: output path.
        names: ids and recordings of the clips of `source`.
        source: origin of the new content, for the message.
    """
    _refuse(path, lambda content, _: not _names(content).isdisjoint(names), f"clip with {source}")


def refuse_other_vectors(
    path: str | os.PathLike[str], features: Mapping[str, NDArray[np.float32]], source: str
) -> None:
    """Raise InputError if a readable feature file at `path` contains clips, but no vector of `source`.

    Args:
        path: output path.
        features: modality -> (n, d), vectors of `source`; vectors of zeros are not compared.
        source: origin of the new content, for the message.
    """

    def share(_: FeatureFile, rows: Mapping[str, ModalityRows]) -> bool:
        for modality in rows.keys() & features.keys():
            vectors = _vectors(features[modality])
            if any(not vectors.isdisjoint(_vectors(block)) for block in rows[modality].pooled.blocks()):
                return True
        return False

    _refuse(path, share, f"vector with {source}")


def _refuse(
    path: str | os.PathLike[str], share: Callable[[FeatureFile, Mapping[str, ModalityRows]], bool], shared: str
) -> None:
    """Raise InputError for a readable feature file with clips if `share` returns False."""
    try:
        with open_features(path) as (content, rows):
            may_replace = not content.ids or share(content, rows)
    except InputError:  # no feature file, or a damaged file
        return
    if not may_replace:
        raise InputError(
            f"{path} shares no {shared}, so this feature file is not overwritten; choose another output, or remove "
            "this file"
        )


def _names(content: FeatureFile) -> set[str]:
    return {*content.ids, *content.columns.get("recording", ())}


def _vectors(values: NDArray[np.float32]) -> set[bytes]:
    return {row.tobytes() for row in np.ascontiguousarray(values, dtype=np.float32) if row.any()}
