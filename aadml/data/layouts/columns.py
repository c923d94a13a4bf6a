"""npz or HDF5 with a row per clip: `audio`, `visual`, `text` (two at least), `label`, `split`, and optionally `id`.

`labels`, `splits` and `ids` are read as `label`, `split` and `id`.

Modalities of other names are those that `modalities` lists, as in what `aadml embed` writes, or that are named.

Several texts a clip stand as `text` (n, c, d), or as `text` (m, d) with `text_row` (m,), the clip of each: the same
file that `aadml evaluate --embeddings` takes.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from aadml.data.layouts.layout import Layout, ReadOptions, h5_arrays, h5_keys, require, same_rows
from aadml.data.raw import assemble, matrix, text
from feature_extraction.feature_file import MODALITIES, FeatureFile, Texts, check_modality, in_order
from feature_extraction.foreign import npz_arrays, npz_keys, written_as
from feature_extraction.ground.archives import is_archive
from feature_extraction.ground.errors import InputError

KEYS = ("audio", "visual", "label")
LISTED = "modalities"
"""The key under which a file names its modalities, where some have other names than the usual ones."""
_MEANINGS = {"train": "train", "valid": "valid", "val": "valid", "validation": "valid", "dev": "valid", "test": "test"}
PRESENT = "_present"
"""Ending of the array that says which clips have a modality."""

_BESIDE = ("label", "split", "id", "class_names", "text_row", LISTED)


def read_columns(path: Path, options: ReadOptions) -> FeatureFile:
    """Read features in columns; which clips are for what, `split` says.

    Raises:
        InputError: a missing key, pickled values, columns of unequal length, or another word for a split.
    """
    arrays, left = _arrays(path, options.views)
    present = {key.removesuffix(PRESENT): arrays.pop(key) for key in list(arrays) if key.endswith(PRESENT)}
    found = in_order(key for key in arrays if key not in _BESIDE)
    if len(found) < 2:
        require(path, KEYS, list(arrays))
    other = next(name for name in found if name != "text")
    texts = _texts(path, arrays, other)
    if texts is not None:
        arrays["text"], there = texts.first_of_each(len(arrays[other]))
        present |= {} if there.all() else {"text": there}
    if "split" not in arrays and options.undivided:
        arrays["split"] = np.full(len(arrays[found[0]]), "train")
    if "split" not in arrays:
        raise InputError(
            f"{path}: has no 'split'; add an array with train, valid or test for each clip, or draw one: "
            f"`aadml convert {path} F.h5 --split random:0.7/0.1/0.2`"
        )
    chosen = {key: arrays[key] for key in (*found, "label", "split", "id") if key in arrays}
    chosen |= {f"{name}{PRESENT}": there for name, there in present.items()}
    same_rows(path, {name: array.shape[0] if array.ndim else 0 for name, array in chosen.items()})
    words = [text(value) for value in arrays["split"].ravel().tolist()]
    wrong = next((word for word in words if word not in _MEANINGS), None)
    if wrong is not None or len(words) != len(arrays[found[0]]):
        raise InputError(f"{path}: 'split': {wrong!r} given; one of {', '.join(_MEANINGS)} per clip is possible")
    return assemble(
        path,
        "columns",
        features={modality: arrays[modality] for modality in found},
        labels=arrays.get("label"),
        splits=[_MEANINGS[word] for word in words],
        ids=[text(value) for value in arrays["id"].ravel().tolist()] if "id" in arrays else None,
        class_names=options.class_names or _class_names(arrays),
        present=present,
        texts=texts,
        notes=[f"left out: {', '.join(left)} (--view NAME=KEY takes an array as a modality)"] if left else [],
    )


def _arrays(path: Path, named: Mapping[str, str]) -> tuple[dict[str, NDArray[np.generic]], list[str]]:
    """Read the columns, and name what is left out; `named` says under which name the file has a modality."""
    keys = npz_keys(path) if is_archive(path) else h5_keys(path)
    read = npz_arrays if is_archive(path) else h5_arrays
    require(path, tuple(named.values()), list(keys))
    listed = [text(name) for name in read(path, (LISTED,))[LISTED].ravel().tolist()] if LISTED in keys else []
    for name in listed:
        check_modality(name, f"{path}: {LISTED}")
    usual = {name: written_as(name, keys) for name in (*MODALITIES, *listed, *_BESIDE)}
    places = {name: key for name, key in usual.items() if key in keys} | dict(named)
    masks = {f"{name}{PRESENT}": f"{key}{PRESENT}" for name, key in places.items() if name not in _BESIDE}
    places |= {name: key for name, key in masks.items() if key in keys}
    arrays = read(path, tuple(dict.fromkeys(places.values())))
    left = sorted(key for key in keys if key not in places.values())
    return {name: arrays[key] for name, key in places.items()}, left


def _texts(path: Path, arrays: dict[str, NDArray[np.generic]], other: str) -> Texts | None:
    """Take the texts (m, d) of clips that have several, and whose each is (m,), out of the columns."""
    values, rows = arrays.get("text"), arrays.pop("text_row", None)
    if values is None or (rows is None and values.ndim != 3):
        return None
    clips = len(arrays[other])
    if rows is None:
        rows, values = np.repeat(np.arange(len(values)), values.shape[1]), values.reshape(-1, values.shape[2])
    values = matrix(values, f"{path}: text")
    whole = rows.dtype.kind in "iu" and rows.shape == (len(values),)
    if not whole or not np.isin(rows, np.arange(clips)).all():
        raise InputError(f"{path}: text_row must hold {len(values)} rows of the {clips} clips, one for each text")
    return Texts.sorted(values, rows.astype(np.int64))


def _class_names(arrays: Mapping[str, NDArray[np.generic]]) -> tuple[str, ...] | None:
    """Give the names of the classes, where labels are positions among them."""
    names, labels = arrays.get("class_names"), arrays.get("label")
    if names is None or labels is None or labels.dtype.kind not in "iu" or not labels.size:
        return None
    if labels.min() < 0 or labels.max() >= names.size:
        return None
    return tuple(text(name) for name in names.ravel().tolist())


COLUMNS = Layout("npz", KEYS, read_columns)
"""npz with audio, visual, label or none, split ('train', 'valid', 'test'), and optionally id, text, class_names."""

COLUMNS_H5 = Layout("h5", KEYS, read_columns)
"""HDF5 with the keys of the npz: audio, visual, label, split, as `aadml embed` writes them."""
