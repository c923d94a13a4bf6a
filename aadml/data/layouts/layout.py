"""What every layout of the field's files offers."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.feature_file import FeatureFile
from aadml.feature_extraction.ground.errors import InputError


@dataclass(frozen=True)
class ReadOptions:
    """What a reader may be told; each reader takes what concerns it.

    Args:
        views: modality -> name of the array or view that is taken for it, where the file does not say.
        class_names: names of the classes in the order of the label values.
        test_fold: number of the fold that is the test split, where there are folds; the last by default.
        undivided: take a file that does not say which clips are for what; all of them count as train.
    """

    views: Mapping[str, str] = field(default_factory=dict)
    class_names: tuple[str, ...] | None = None
    test_fold: int | None = None
    undivided: bool = False


@dataclass(frozen=True)
class Layout:
    """One way in which features lie on disk.

    Args:
        kind: what it is: an HDF5 file, an npz file, or a folder.
        keys: keys, name endings or entries by which it is known; the layout with the greatest share present is taken.
        read: the reader.
        takes: which of `views` and `test_fold` it follows; other readers have nothing to choose.
    """

    kind: Literal["h5", "npz", "folder"]
    keys: tuple[str, ...]
    read: Callable[[Path, ReadOptions], FeatureFile]
    takes: tuple[Literal["views", "test_fold"], ...] = ()


def same_rows(path: str | os.PathLike[str], counts: dict[str, int]) -> None:
    """Refuse arrays that should have a row for each clip and do not.

    Raises:
        InputError: names two arrays of different length.
    """
    names = list(counts)
    for name in names[1:]:
        if counts[name] != counts[names[0]]:
            raise InputError(
                f"{path}: '{names[0]}' has {counts[names[0]]} rows, but '{name}' has {counts[name]}; "
                "row i of both must be the same clip"
            )


def stacked(path: str | os.PathLike[str], parts: dict[str, NDArray[np.generic]]) -> NDArray[np.generic]:
    """Join the parts of one array (key -> rows) below each other; labels (n, 1) and (n,) go together.

    Raises:
        InputError: names two parts whose rows differ in length, or a part that is a single value.
    """
    rows = {name: part[:, 0] if part.ndim == 2 and part.shape[1] == 1 else part for name, part in parts.items()}
    first = next(iter(rows))
    for name, part in rows.items():
        if part.ndim == 0 or part.shape[1:] != rows[first].shape[1:]:
            raise InputError(
                f"{path}: '{first}' has shape {parts[first].shape}, but '{name}' has {parts[name].shape}; "
                "all but the number of rows must agree"
            )
    return np.concatenate(list(rows.values()))
