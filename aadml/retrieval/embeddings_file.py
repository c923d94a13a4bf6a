"""Embeddings made elsewhere: npz or HDF5 files with `audio`, `visual`, `label`, and optionally `id` and `split`."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch
from numpy.typing import NDArray

from aadml.comparison.types import MODALITIES, Embeddings, Modality
from feature_extraction.foreign import npz_arrays, open_hdf5
from feature_extraction.ground.archives import is_archive
from feature_extraction.ground.errors import InputError

KEYS = ("label", "id", "split", "class_names")
ALIASES = {"val": "valid", "validation": "valid", "dev": "valid"}


def read_embeddings(path: str | os.PathLike[str], split: str | None = None) -> tuple[Embeddings, str]:
    """Read embeddings.

    Args:
        path: npz or HDF5 with `audio`, `visual` or `text` (n, d), two of them at least, and `label` (n,) integers or
            text; optionally `id` (n,), `split` (n,), `class_names` (C,), and in HDF5 an attribute `similarity`.
        split: which clips, where the file has a `split`; by default "test". A file without one is read whole.

    Returns:
        The embeddings, labels recoded to 0..C-1, and the name of the split: "all" where the file has none.

    Raises:
        InputError: no such file, another format, something missing or malformed, NaN, or no clip of that split.
    """
    place = Path(path)
    arrays, similarity = _read(place)
    vectors = {
        modality: _matrix(arrays[modality], f"{place}: {modality}") for modality in MODALITIES if modality in arrays
    }
    if len(vectors) < 2 or "label" not in arrays:
        found = ", ".join(arrays) or "nothing"
        raise InputError(f"{place}: has {found}; wanted 'audio', 'visual' or 'text' (two at least) and 'label'")
    count = len(next(iter(vectors.values())))
    for modality, matrix in vectors.items():
        if len(matrix) != count:
            raise InputError(f"{place}: {len(matrix)} {modality} rows, but {count} of {next(iter(vectors))}")
    columns = {key: _column(arrays[key], f"{place}: {key}", count) for key in KEYS[:3] if key in arrays}
    codes, names = _classes(columns["label"], arrays.get("class_names"))
    ids = columns.get("id", np.arange(count)).astype(str)
    _check_unique(names, f"{place}: class_names")
    if "text" not in vectors:  # a clip with several captions stands in several rows
        _check_unique(ids.tolist(), f"{place}: id")
    kept, chosen = _rows(columns.get("split"), split, count, place)
    parts: dict[Modality, torch.Tensor] = {
        modality: torch.from_numpy(matrix[kept]) for modality, matrix in vectors.items()
    }
    try:
        labels = torch.from_numpy(codes[kept])
        return Embeddings(parts, labels, tuple(ids[kept].tolist()), similarity, names), chosen
    except InputError as error:
        raise InputError(f"{place}: {error}") from error


def _read(place: Path) -> tuple[dict[str, NDArray[Any]], str]:
    if not place.is_file():
        raise InputError(f"{place}: {'is a folder, not a file' if place.is_dir() else 'no such file'}")
    wanted = (*MODALITIES, *KEYS)
    if is_archive(place):
        arrays = npz_arrays(place, (*wanted, "similarity"))
        similarity = str(arrays.pop("similarity", "cosine"))
        return {key: arrays[key] for key in wanted if key in arrays}, similarity
    with open_hdf5(place) as file:
        return {key: _dataset(file, key, place) for key in wanted if key in file}, _text(
            file.attrs.get("similarity", "cosine")
        )


def _dataset(file: Mapping[str, Any], key: str, place: Path) -> NDArray[Any]:
    data = file[key]
    if not isinstance(data, h5py.Dataset) or data.shape is None:
        raise InputError(f"{place}: '{key}' is a group or empty; wanted an array")
    try:
        return np.asarray(data.asstr()[...] if h5py.check_string_dtype(data.dtype) else data[...])
    except UnicodeDecodeError as error:
        raise InputError(f"{place}: '{key}' holds strings that are not UTF-8") from error


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _matrix(values: NDArray[Any], where: str) -> NDArray[Any]:
    if values.ndim != 2 or values.dtype.kind not in "fiu" or not values.size:
        raise InputError(f"{where}: {values.dtype} of shape {values.shape}; wanted numbers (n, d)")
    return values if values.dtype in (np.float32, np.float64) else values.astype(np.float32)


def _column(values: NDArray[Any], where: str, count: int) -> NDArray[Any]:
    flat = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
    if flat.shape != (count,):
        raise InputError(f"{where}: shape {values.shape}; wanted ({count},), one for each row of the vectors")
    if flat.dtype.kind in "fc" and not (np.isfinite(flat).all() and (flat == np.round(flat)).all()):
        raise InputError(f"{where}: holds fractions or NaN; wanted integers or text")
    if flat.dtype.kind == "S":
        flat = np.char.decode(flat, "utf-8")
    return flat.astype(np.int64) if flat.dtype.kind == "f" else flat.astype(str) if flat.dtype.kind == "O" else flat


def _check_unique(names: Sequence[str], where: str) -> None:
    if len(set(names)) < len(names):
        name, times = Counter(names).most_common(1)[0]
        raise InputError(f"{where}: {name!r} stands there {times} times; each name must stand for one thing")


def _classes(labels: NDArray[Any], names: NDArray[Any] | None) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Give labels 0..C-1 and the names of the classes: the file's where its labels are positions among them."""
    if names is not None and labels.dtype.kind in "iu" and labels.min() >= 0 and labels.max() < len(names):
        return labels.astype(np.int64), tuple(_text(name) for name in names.tolist())
    values, codes = np.unique(labels, return_inverse=True)
    return codes.astype(np.int64), tuple(str(value) for value in values.tolist())


def _rows(splits: NDArray[Any] | None, split: str | None, count: int, place: Path) -> tuple[NDArray[np.int64], str]:
    if splits is None:
        return np.arange(count), "all"
    known = np.asarray([ALIASES.get(str(name), str(name)) for name in splits.tolist()])
    chosen = ALIASES.get(split or "test", split or "test")
    rows = np.flatnonzero(known == chosen)
    if not len(rows):
        raise InputError(f"{place}: no clip of the split '{chosen}'; there are {', '.join(np.unique(known).tolist())}")
    return rows.astype(np.int64), chosen
