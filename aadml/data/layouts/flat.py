"""HDF5 with all splits in the same arrays: `audio_feat`, `visual_feat`, `Label_ID`, and `Train_test` or `Split`."""

from collections.abc import Mapping
from pathlib import Path

from aadml.data.layouts.arrays_on_disk import read_split_column
from aadml.data.layouts.layout import Layout, LayoutArrays, left_out, same_rows
from aadml.feature_extraction.foreign.hdf5 import hdf5_arrays, hdf5_keys, require_keys

KEYS = ("audio_feat", "visual_feat", "Label_ID")
_SPLIT_KEYS = ("Train_test", "Split")


def read_flat(path: Path, _: Mapping[str, str]) -> LayoutArrays:
    """Read the flat layout; splits are words, or "1" for train and "0" for test.

    Raises:
        InputError: an unreadable file, a missing key, arrays of different lengths, or an unknown split.
    """
    keys = hdf5_keys(path)
    split_key = next((key for key in _SPLIT_KEYS if key in keys), " or ".join(_SPLIT_KEYS))
    require_keys(path, (*KEYS, split_key), list(keys))
    arrays = hdf5_arrays(path, (*KEYS, split_key))
    same_rows(path, arrays)
    return LayoutArrays(
        {"audio": arrays["audio_feat"], "visual": arrays["visual_feat"]},
        arrays["Label_ID"],
        read_split_column(arrays[split_key], f"{path}: '{split_key}'", {"1": "train", "0": "test"}),
        notes=left_out(keys, arrays),
    )


FLAT = Layout("flat", "h5", KEYS, read_flat)
"""HDF5 with audio_feat, visual_feat, Label_ID and Train_test or Split ('1' train, '0' test)."""
