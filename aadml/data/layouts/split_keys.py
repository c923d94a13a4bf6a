"""HDF5 with a key for each part and modality: `audio_train`, `visual_train`, `lab_train`, and the same for test.

The files `vegas_feature.h5`, `vegas_feature_norm.h5`, `AVE_feature_updated_squence.h5`, `ave_feature_norm.h5` of the
audio-visual retrieval papers have this layout. A validation part (`*_valid` or `*_val`) is read where there is one.
"""

from pathlib import Path

from aadml.data.layouts.arrays_on_disk import assemble
from aadml.data.layouts.layout import Layout, ReadOptions, same_rows, stacked
from aadml.feature_extraction.feature_file import FeatureFile
from aadml.feature_extraction.foreign import hdf5_arrays, hdf5_keys

KEYS = ("audio_train", "visual_train", "lab_train", "audio_test", "visual_test", "lab_test")
_NAMES = ("audio", "visual", "lab")


def read_split_keys(path: Path, options: ReadOptions) -> FeatureFile:
    """Read the layout with a key for each part and modality.

    Raises:
        InputError: a missing key, or parts that contradict each other.
    """
    found = hdf5_keys(path)
    more = {part: "valid" for part in ("valid", "val") if f"audio_{part}" in found}
    parts = {"train": "train", **more, "test": "test"}
    arrays = hdf5_arrays(path, tuple(f"{name}_{part}" for part in parts for name in _NAMES))
    whole = {name: stacked(path, {f"{name}_{part}": arrays[f"{name}_{part}"] for part in parts}) for name in _NAMES}
    for part in parts:
        same_rows(path, {f"{name}_{part}": len(arrays[f"{name}_{part}"]) for name in _NAMES})
    return assemble(
        path,
        "split-keys",
        features={"audio": whole["audio"], "visual": whole["visual"]},
        labels=whole["lab"],
        splits=[split for part, split in parts.items() for _ in range(len(arrays[f"lab_{part}"]))],
        class_names=options.class_names,
    )


SPLIT_KEYS = Layout("h5", KEYS, read_split_keys)
"""HDF5 with audio_train, visual_train, lab_train and the same for test (vegas_feature.h5, AVE_feature_...h5)."""
