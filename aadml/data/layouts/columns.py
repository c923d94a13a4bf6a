"""npz with a row per clip: `audio`, `visual`, `label`, `split`, and optionally `id`, as `aadml evaluate` takes it."""

from pathlib import Path

from aadml.data.layouts.layout import Layout, ReadOptions, require, same_rows
from aadml.data.raw import assemble, text
from feature_extraction.feature_file import FeatureFile
from feature_extraction.foreign import npz_arrays
from feature_extraction.ground.errors import InputError

KEYS = ("audio", "visual", "label")
_MEANINGS = {"train": "train", "valid": "valid", "val": "valid", "validation": "valid", "dev": "valid", "test": "test"}


def read_columns(path: Path, options: ReadOptions) -> FeatureFile:
    """Read features in columns; which clips are for what, `split` says.

    Raises:
        InputError: a missing key, pickled values, columns of unequal length, or another word for a split.
    """
    arrays = npz_arrays(path)
    require(path, KEYS, list(arrays))
    if "split" not in arrays:
        raise InputError(f"{path}: has no 'split'; add an array with train, valid or test for each clip")
    chosen = {key: arrays[key] for key in (*KEYS, "split", "id") if key in arrays}
    same_rows(path, {name: array.shape[0] if array.ndim else 0 for name, array in chosen.items()})
    words = [text(value) for value in arrays["split"].ravel().tolist()]
    wrong = next((word for word in words if word not in _MEANINGS), None)
    if wrong is not None or len(words) != len(arrays["label"]):
        raise InputError(f"{path}: 'split': {wrong!r} given; one of {', '.join(_MEANINGS)} per clip is possible")
    return assemble(
        path,
        "columns",
        features={"audio": arrays["audio"], "visual": arrays["visual"]},
        labels=arrays["label"],
        splits=[_MEANINGS[word] for word in words],
        ids=[text(value) for value in arrays["id"].ravel().tolist()] if "id" in arrays else None,
        class_names=options.class_names,
    )


COLUMNS = Layout("npz", KEYS, read_columns)
"""npz with audio, visual, label, split ('train', 'valid', 'test'), and optionally id: a row per clip."""
