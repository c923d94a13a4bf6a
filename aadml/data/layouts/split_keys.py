"""HDF5 with one key per array and part, such as `audio_train`.

The keys are `audio_train`, `visual_train`, `lab_train`, `audio_test`, `visual_test` and `lab_test`. A validation part
`valid`, `val`, `validation` or `dev` is read if present. The files `vegas_feature.h5`, `vegas_feature_norm.h5`,
`AVE_feature_updated_squence.h5`, `ave_feature_norm.h5` of the audio-visual retrieval papers have this layout.
"""

from collections.abc import Mapping
from pathlib import Path

from aadml.data.layouts.layout import Layout, LayoutArrays, read_parts
from aadml.feature_extraction.foreign.hdf5 import hdf5_arrays, hdf5_keys

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
