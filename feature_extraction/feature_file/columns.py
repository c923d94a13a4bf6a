"""Reader of the arrays of npz files, HDF5 files and tables; most arrays have one row per clip."""

import os
from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.feature_file.content import UNLABELLED
from aadml.feature_extraction.feature_file.names import MODALITIES, check_modality
from aadml.feature_extraction.foreign.hdf5 import hdf5_arrays, hdf5_keys, require_keys
from aadml.feature_extraction.foreign.numpy_files import npz_arrays, npz_keys
from aadml.feature_extraction.foreign.tables import is_table, table_arrays, table_keys
from aadml.feature_extraction.ground.archives import is_archive
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.strings import as_text

LISTED = "modalities"
"""Key of the list of modalities, in files with modalities other than audio, visual and text."""

PRESENT = "_present"
"""Suffix of the key of a mask: the clips that have a modality."""

TEXT_ROW = "text_row"
"""Key of the array with the clip of each text, for clips with several texts."""

ALL_LABELS = "labels"
"""Key of the marks (n, C) of all classes of each clip, in files that also have `label` and `class_names`."""

BESIDE = ("label", "split", "id", "class_names", TEXT_ROW)
"""Keys of the arrays that are not modalities."""

_PLURALS = {"label": "labels", "id": "ids", "split": "splits"}


@dataclass(frozen=True)
class Columns:
    """Arrays of a file; only the keys are checked.

    Attributes:
        path: path of the file.
        features: modality -> array.
        beside: key of `BESIDE` -> array.
        present: modality -> mask of the clips that have the modality, for modalities with a mask in the file.
        left: other keys of the file.
        all_labels: (n, C) marks of all classes of each clip; None if the file has no such array.
    """

    path: str
    features: dict[str, NDArray[Any]]
    beside: dict[str, NDArray[Any]]
    present: dict[str, NDArray[Any]]
    left: list[str]
    all_labels: NDArray[np.bool_] | None = None

    def several_texts(self, clips: int) -> tuple[NDArray[Any], NDArray[np.int64]] | None:
        """Return the texts (m, d) and the clip numbers (m,) of the texts.

        Texts (n, k, d) need no `text_row`; texts of any other shape need `text_row`. The result is None if `text`
        or a needed `text_row` is missing.

        Args:
            clips: number of clips.

        Raises:
            InputError: `text_row` does not contain a valid clip number for every text, or texts (n, k, d) without
                `text_row` have an n other than `clips`.
        """
        texts, rows = self.features.get("text"), self.beside.get(TEXT_ROW)
        if texts is None or (rows is None and texts.ndim != 3):
            return None
        if rows is None and len(texts) != clips:
            raise InputError(
                f"{self.path}: 'text' has {len(texts)} rows, but there are {clips} clips; store the texts of clip i in "
                f"row i, or add {TEXT_ROW}, the clip number of each text"
            )
        if rows is None:
            rows, texts = np.repeat(np.arange(len(texts)), texts.shape[1]), texts.reshape(-1, texts.shape[2])
        is_index = rows.dtype.kind in "iu" and rows.shape == texts.shape[:1]
        if not is_index or not np.isin(rows, np.arange(clips)).all():
            span = f" from {rows.min()} to {rows.max()}" if is_index else ""
            raise InputError(
                f"{self.path}: {TEXT_ROW} contains {rows.dtype} {rows.shape}{span}, but must contain {len(texts)} clip "
                f"numbers from 0 to {clips - 1}, one for each text; correct these numbers"
            )
        return texts, rows.astype(np.int64)

    def labels_are_positions(self) -> bool:
        """Return whether all labels are positions in the `class_names` of the file, or `UNLABELLED`."""
        names, labels = self.beside.get("class_names"), self.beside.get("label")
        if names is None or labels is None or labels.dtype.kind not in "iu" or not labels.size:
            return False
        is_single = labels.shape[1:] in ((), (1,))
        return bool(is_single and labels.min() >= UNLABELLED and labels.max() < names.size)


def read_columns(path: str | os.PathLike[str], named: Mapping[str, str] | None = None) -> Columns:
    """Read the arrays of a file.

    Args:
        path: npz, HDF5 or a table; `labels`, `ids` and `splits` are accepted for `label`, `id` and `split`.
        named: modality -> key, for modalities whose key differs from the name of the modality.

    Raises:
        InputError: the file cannot be read, lacks a named key, lists an invalid modality name, or has a modality
            without rows.
    """
    if is_table(Path(path)):
        keys, read = table_keys(path), table_arrays
    elif is_archive(Path(path)):
        keys, read = npz_keys(path), npz_arrays
    else:
        keys, read = hdf5_keys(path), hdf5_arrays
    require_keys(path, tuple((named or {}).values()), keys)
    listed = [as_text(name) for name in read(path, (LISTED,))[LISTED].ravel().tolist()] if LISTED in keys else []
    for name in listed:
        check_modality(name, f"{path}: {LISTED}")
    usual = {name: written_as(name, keys) for name in (*MODALITIES, *listed, *BESIDE)}
    places = {name: key for name, key in usual.items() if key in keys} | dict(named or {})
    masks = {name: f"{key}{PRESENT}" for name, key in places.items() if name not in BESIDE}
    masks = {name: key for name, key in masks.items() if key in keys}
    arrays = read(path, tuple(dict.fromkeys((*places.values(), *masks.values()))))
    for key in (key for name, key in places.items() if name not in BESIDE and not arrays[key].ndim):
        raise InputError(f"{path}: '{key}' is a single value, but must have one row per clip; write one row per clip")
    columns = Columns(
        str(path),
        {name: arrays[key] for name, key in places.items() if name not in BESIDE},
        {name: arrays[key] for name, key in places.items() if name in BESIDE},
        {name: arrays[key] for name, key in masks.items()},
        sorted({*keys} - {*places.values(), *masks.values(), LISTED}),
    )
    if ALL_LABELS not in columns.left or not columns.labels_are_positions():
        return columns
    labels, names = columns.beside["label"].reshape(-1), columns.beside["class_names"]
    try:
        marks = read(path, (ALL_LABELS,))[ALL_LABELS]
    except InputError:  # another array of this name, such as lists of different lengths
        return columns
    if marks.shape != (labels.size, names.size) or not np.isin(marks, (0, 1)).all():
        return columns
    if not np.where(labels == UNLABELLED, ~marks.any(axis=1), marks[np.arange(labels.size), labels] == 1).all():
        return columns
    return replace(columns, left=[key for key in columns.left if key != ALL_LABELS], all_labels=marks == 1)


def written_as(column: str, keys: Container[str]) -> str:
    """Return the key of a column: its name, or the plural if the file has only the plural.

    Args:
        column: "label", "id", "split", or any other name, which has no plural.
        keys: keys of the file.
    """
    plural = _PLURALS.get(column, column)
    return plural if plural in keys and column not in keys else column
