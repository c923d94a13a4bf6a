"""HDF5 and npz with one key per array and part, such as `audio_train` or `train_audios`.

HDF5 files of the layout "split-keys" have the keys `audio_train`, `visual_train`, `lab_train`, `audio_test`,
`visual_test` and `lab_test`. The files `vegas_feature.h5`, `vegas_feature_norm.h5`,
`AVE_feature_updated_squence.h5`, `ave_feature_norm.h5` of the audio-visual retrieval papers have this layout.

HDF5 and npz files of the layout "split-first" have the keys `train_audios`, `train_visuals`, `train_labels`,
`test_audios`, `test_visuals` and `test_labels`. In both layouts, a validation part `valid`, `val`, `validation` or
`dev` is read if present.
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from aadml.data.layouts.layout import Layout, LayoutArrays, read_parts
from aadml.feature_extraction.foreign.hdf5 import hdf5_arrays, hdf5_keys
from aadml.feature_extraction.foreign.numpy_files import npz_arrays, npz_keys

KEYS = ("audio_train", "visual_train", "lab_train", "audio_test", "visual_test", "lab_test")
_NAMES = ("audio", "visual", "lab")


def read_split_keys(path: Path, _: Mapping[str, str]) -> LayoutArrays:
    """Read the layout with a key for each part and modality.

    Raises:
        InputError: an unreadable file, a missing key, or inconsistent parts.
    """
    joined, splits, notes = read_parts(path, _NAMES, hdf5_keys(path), hdf5_arrays)
    return LayoutArrays({"audio": joined["audio"], "visual": joined["visual"]}, joined["lab"], splits, notes=notes)


SPLIT_KEYS = Layout("split-keys", "h5", KEYS, read_split_keys)
"""HDF5 with audio_train, visual_train, lab_train and the same for test (vegas_feature.h5, AVE_feature_...h5)."""

SPLIT_FIRST_KEYS = tuple(f"{part}_{name}" for part in ("train", "test") for name in ("audios", "visuals", "labels"))


def read_split_first(path: Path, _: Mapping[str, str], *, npz: bool = False) -> LayoutArrays:
    """Read the layout with keys that begin with the part: `train_audios`, `train_visuals`, `train_labels`.

    Args:
        path: the file.
        npz: whether the file is npz instead of HDF5.

    Raises:
        InputError: an unreadable file, a missing key, or inconsistent parts.
    """
    keys, read = (npz_keys(path), npz_arrays) if npz else (hdf5_keys(path), hdf5_arrays)
    joined, splits, notes = read_parts(path, ("audios", "visuals", "labels"), keys, read, "{part}_{name}")
    features = {"audio": joined["audios"], "visual": joined["visuals"]}
    return LayoutArrays(features, joined["labels"], splits, notes=notes)


SPLIT_FIRST = Layout("split-first", "h5", SPLIT_FIRST_KEYS, read_split_first)
"""HDF5 with train_audios, train_visuals, train_labels and the same for test (unverified: no page documents it)."""

SPLIT_FIRST_NPZ = Layout("split-first", "npz", SPLIT_FIRST_KEYS, partial(read_split_first, npz=True))
"""npz with train_audios, train_visuals, train_labels and the same for test (unverified: no page documents it)."""
