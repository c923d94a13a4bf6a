"""A folder of 8-bit features: `vgg/<id>.npy` (t, 128), `inception/<id>.npy` (t, 1024), `classes/<id>.npy`.

The features of a clip have t rows, one per point in time. The first value in a file of `classes` is the class of
the clip. The folder `folds` contains text files of ids, one id per line. The clips of the last fold by name are for
test, and the clips of all other folds are for train.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from aadml.data.layouts.layout import Layout, LayoutArrays
from aadml.data.splitting.folds import first_five, read_folds
from aadml.feature_extraction.foreign.numpy_files import npy_array
from aadml.feature_extraction.ground.errors import InputError

KEYS = ("vgg", "inception", "classes", "folds")
_PARTS = {"audio": "vgg", "visual": "inception"}


def read_bytes_folder(path: Path, _: Mapping[str, str]) -> LayoutArrays:
    """Read the folder; the features (n, d) are (mean - 128) / 256, with the mean of the 8-bit values over time.

    Raises:
        InputError: a missing folder, no clip with all files, or a file that cannot be read or has an unsuitable shape.
    """
    for name in KEYS:
        if not (path / name).is_dir():
            raise InputError(f"{path} contains no folder '{name}'; add the folders {', '.join(KEYS)}")
    split_of, notes, note = read_folds(path / "folds")
    names = [name for name in split_of if all((path / part / f"{name}.npy").is_file() for part in KEYS[:3])]
    absent = [name for name in split_of if name not in set(names)]
    if absent:
        notes.append(
            f"{len(absent)} of {len(split_of)} ids were left out because a file is missing: {first_five(absent)}"
        )
    unlisted = sorted({file.stem for file in (path / "classes").glob("*.npy")} - set(split_of))
    if unlisted:
        notes.append(f"{len(unlisted)} clips were left out because no fold lists them: {first_five(unlisted)}")
    if not names:
        raise InputError(
            f"{path}: no id of the folds has a file in each of {', '.join(KEYS[:3])} ({len(absent)} ids are "
            "incomplete); add the files"
        )
    return LayoutArrays(
        {modality: _stacked([path / part / f"{name}.npy" for name in names]) for modality, part in _PARTS.items()},
        np.stack([_class_of(path / "classes" / f"{name}.npy") for name in names]),
        [split_of[name] for name in names],
        ids=names,
        notes=[*notes, note],
        sources=sorted(file for file in (path / "folds").iterdir() if file.is_file()),
    )


def _stacked(files: Sequence[Path]) -> NDArray[np.float32]:
    """Return the pooled features (n, d) of one modality."""
    rows = [_pooled(file) for file in files]
    for file, row in zip(files, rows, strict=True):
        if len(row) != len(rows[0]):
            raise InputError(
                f"{file} has {len(row)} dimensions, but {files[0]} has {len(rows[0])}; store features of equal length"
            )
    return np.stack(rows)


def _class_of(file: Path) -> NDArray[np.generic]:
    values = npy_array(file).reshape(-1)
    if not len(values):
        raise InputError(f"{file} is empty; write the number of a class into the file")
    if (values[1:] != values[0]).any():
        raise InputError(f"{file} has {len(values)} unequal values; write the number of one class into the file")
    return np.asarray(values[0])


def _pooled(file: Path) -> NDArray[np.float32]:
    values = npy_array(file)
    if values.ndim != 2 or not values.size:
        raise InputError(f"{file} has shape {values.shape}; pass a nonempty array (times, dimensions)")
    return np.asarray((values.mean(axis=0, dtype=np.float64) - 128) / 256, dtype=np.float32)


BYTES_FOLDER = Layout("bytes-folder", "folder", KEYS, read_bytes_folder)
"""Folder with vgg/, inception/, classes/ (npy, 8-bit) and folds/ (lists of ids), as used for VEGAS."""
