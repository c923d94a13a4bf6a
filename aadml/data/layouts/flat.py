"""HDF5 with all clips below each other: `audio_feat`, `visual_feat`, `Label_ID`, and `Train_test` or `Split`."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from aadml.data.layouts.arrays_on_disk import assemble, text
from aadml.data.layouts.layout import Layout, ReadOptions, same_rows
from aadml.feature_extraction.feature_file import FeatureFile
from aadml.feature_extraction.foreign import hdf5_arrays, hdf5_keys, require_keys
from aadml.feature_extraction.ground.errors import InputError

KEYS = ("audio_feat", "visual_feat", "Label_ID")
_SPLIT_KEYS = ("Train_test", "Split")
_MEANINGS = {"1": "train", "0": "test", "train": "train", "test": "test", "valid": "valid", "val": "valid"}


def read_flat(path: Path, options: ReadOptions) -> FeatureFile:
    """Read the flat layout; the split is text, "1" for train and "0" for test.

    Raises:
        InputError: a missing key, parts that contradict each other, or another word for a split.
    """
    found = hdf5_keys(path)
    split_key = next((key for key in _SPLIT_KEYS if key in found), None)
    if split_key is None:
        require_keys(path, (*KEYS, " or ".join(_SPLIT_KEYS)), list(found))
        raise AssertionError("unreachable: the split key is missing")
    arrays = hdf5_arrays(path, (*KEYS, split_key))
    same_rows(path, {name: array.shape[0] if array.ndim else 0 for name, array in arrays.items()})
    return assemble(
        path,
        "flat",
        features={"audio": arrays["audio_feat"], "visual": arrays["visual_feat"]},
        labels=arrays["Label_ID"],
        splits=_splits(arrays[split_key], f"{path}: '{split_key}'"),
        class_names=options.class_names,
    )


def _splits(values: NDArray[np.generic], place: str) -> list[str]:
    if not values.size:
        raise InputError(f"{place} has shape {values.shape}; the file holds no clips")
    flat = values.reshape(len(values), -1)
    if flat.shape[1] != 1:
        raise InputError(f"{place} has shape {values.shape}; one word a clip is needed")
    words = [text(value) for value in flat[:, 0].tolist()]
    for row, word in enumerate(words):
        if _meaning(word) is None:
            raise InputError(f"{place}: '{word}' in row {row} is not a split; possible are {', '.join(_MEANINGS)}")
    return [_meaning(word) or "" for word in words]


def _meaning(word: str) -> str | None:
    return _MEANINGS.get(word.lower().removesuffix(".0"))


FLAT = Layout("h5", KEYS, read_flat)
"""HDF5 with audio_feat, visual_feat, Label_ID and Train_test or Split ('1' train, '0' test)."""
