"""HDF5 with a key for each part and modality: `audio_train`, `visual_train`, `lab_train`, and the same for test.

The files `vegas_feature.h5`, `vegas_feature_norm.h5`, `AVE_feature_updated_squence.h5`, `ave_feature_norm.h5` of the
audio-visual retrieval papers have this layout. A validation part (`*_valid` or `*_val`) is read if present.
"""

from collections.abc import Mapping
from pathlib import Path

from aadml.data.layouts.layout import Layout, LayoutArrays, read_parts
from aadml.feature_extraction.foreign import hdf5_arrays, hdf5_keys

KEYS = ("audio_train", "visual_train", "lab_train", "audio_test", "visual_test", "lab_test")
_NAMES = ("audio", "visual", "lab")


def read_split_keys(path: Path, _: Mapping[str, str]) -> LayoutArrays:
    """Read the layout with a key for each part and modality.

    Raises:
        InputError: a key is missing, or parts contradict each other.
    """
    joined, splits = read_parts(path, _NAMES, hdf5_keys(path), hdf5_arrays)
    return LayoutArrays({"audio": joined["audio"], "visual": joined["visual"]}, joined["lab"], splits)


SPLIT_KEYS = Layout("split-keys", "h5", KEYS, read_split_keys)
"""HDF5 with audio_train, visual_train, lab_train and the same for test (vegas_feature.h5, AVE_feature_...h5)."""
