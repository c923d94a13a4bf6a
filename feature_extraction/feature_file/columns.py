"""Arrays with a row per clip, as people keep them: npz or HDF5, under the usual names or those that the file lists."""

import os
from collections.abc import Container, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.feature_file import MODALITIES, UNLABELLED, check_modality
from aadml.feature_extraction.foreign import hdf5_arrays, hdf5_keys, npz_arrays, npz_keys, require_keys
from aadml.feature_extraction.ground.archives import is_archive
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.strings import as_text

LISTED = "modalities"
"""The key under which a file names its modalities, where some have other names than audio, visual and text."""

PRESENT = "_present"
"""Ending of the key under which stands which clips have a modality."""

TEXT_ROW = "text_row"
"""The key of the clip of each text, where clips have several."""

BESIDE = ("label", "split", "id", "class_names", TEXT_ROW)
"""What may stand beside the modalities."""

_PLURALS = {"label": "labels", "id": "ids", "split": "splits"}


@dataclass(frozen=True)
class Columns:
    """The arrays of a file as they stand there, checked for nothing but their keys.

    Attributes:
        path: of the file.
        features: modality -> its array.
        beside: what of `BESIDE` there is.
        present: modality -> which clips have it, where the file says so.
        left: keys of the file that are none of these.
    """

    path: str
    features: dict[str, NDArray[Any]]
    beside: dict[str, NDArray[Any]]
    present: dict[str, NDArray[Any]]
    left: list[str]

    def several_texts(self, clips: int) -> tuple[NDArray[Any], NDArray[np.int64]] | None:
        """Give the texts (m, d) of so many clips and the clip (m,) of each; None where a clip has one at most.

        Raises:
            InputError: `text_row` does not say of every text which clip it is of.
        """
        texts, rows = self.features.get("text"), self.beside.get(TEXT_ROW)
        if texts is None or (rows is None and texts.ndim != 3):
            return None
        if rows is None:
            rows, texts = np.repeat(np.arange(len(texts)), texts.shape[1]), texts.reshape(-1, texts.shape[2])
        whole = rows.dtype.kind in "iu" and rows.shape == texts.shape[:1]
        if not whole or not np.isin(rows, np.arange(clips)).all():
            count = len(texts) if texts.ndim else 0
            raise InputError(f"{self.path}: {TEXT_ROW} must hold {count} rows of the {clips} clips, one for each text")
        return texts, rows.astype(np.int64)

    def labels_are_positions(self) -> bool:
        """Tell whether labels are positions among the file's `class_names`, or `UNLABELLED`."""
        names, labels = self.beside.get("class_names"), self.beside.get("label")
        if names is None or labels is None or labels.dtype.kind not in "iu" or not labels.size:
            return False
        one_a_clip = labels.shape[1:] in ((), (1,))
        return bool(one_a_clip and labels.min() >= UNLABELLED and labels.max() < names.size)


def read_columns(path: str | os.PathLike[str], named: Mapping[str, str] | None = None) -> Columns:
    """Read the columns of a file.

    Args:
        path: npz or HDF5; `labels`, `ids` and `splits` will do for `label`, `id` and `split`.
        named: modality -> the key that is taken for it, where the file does not say.

    Raises:
        InputError: the file cannot be read, lacks what is named, or lists something that is no name of a modality.
    """
    zipped = is_archive(Path(path))
    keys, read = (npz_keys(path), npz_arrays) if zipped else (hdf5_keys(path), hdf5_arrays)
    require_keys(path, tuple((named or {}).values()), keys)
    listed = [as_text(one) for one in read(path, (LISTED,))[LISTED].ravel().tolist()] if LISTED in keys else []
    for name in listed:
        check_modality(name, f"{path}: {LISTED}")
    usual = {name: written_as(name, keys) for name in (*MODALITIES, *listed, *BESIDE)}
    places = {name: key for name, key in usual.items() if key in keys} | dict(named or {})
    masks = {name: f"{key}{PRESENT}" for name, key in places.items() if name not in BESIDE}
    masks = {name: key for name, key in masks.items() if key in keys}
    arrays = read(path, tuple(dict.fromkeys((*places.values(), *masks.values()))))
    return Columns(
        str(path),
        {name: arrays[key] for name, key in places.items() if name not in BESIDE},
        {name: arrays[key] for name, key in places.items() if name in BESIDE},
        {name: arrays[key] for name, key in masks.items()},
        sorted({*keys} - {*places.values(), *masks.values(), LISTED}),
    )


def written_as(column: str, keys: Container[str]) -> str:
    """Give the key of a column: its name, or its plural where a file has that alone.

    Args:
        column: "label", "id", "split", or any other name, which is its own key.
        keys: of the file.
    """
    plural = _PLURALS.get(column, column)
    return plural if plural in keys and column not in keys else column
