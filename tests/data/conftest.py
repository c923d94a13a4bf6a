from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

from aadml.feature_extraction.feature_file.content import FeatureFile

Write = Callable[..., Path]


@pytest.fixture
def write_h5(tmp_path) -> Write:
    """Return a function that writes arrays as an HDF5 file of the temporary folder."""

    def write(name: str = "data.h5", **arrays: np.ndarray) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with h5py.File(path, "w") as file:
            for key, values in arrays.items():
                file[key] = values
        return path

    return write


@pytest.fixture
def split_keys() -> dict[str, np.ndarray]:
    """Arrays of the layout with a key for each part: 12 train and 6 test clips of classes 3, 5 and 9."""
    generator = np.random.default_rng(0)
    parts = {}
    for part, count in (("train", 12), ("test", 6)):
        parts[f"audio_{part}"] = generator.standard_normal((count, 4))
        parts[f"visual_{part}"] = generator.standard_normal((count, 7)).astype(np.float32)
        parts[f"lab_{part}"] = np.resize([9, 3, 5], count)
    return parts


@pytest.fixture
def make_content() -> Callable[..., FeatureFile]:
    """Return a function that makes content from labels and splits; features are numbered rows."""

    def make(labels, splits, features=None, ids=None, provenance=None, **more) -> FeatureFile:
        count = len(labels)
        rows = np.arange(count * 3, dtype=np.float32).reshape(count, 3)
        features = {"audio": rows, "visual": -rows} if features is None else features
        return FeatureFile(
            features=features,
            labels=np.asarray(labels, dtype=np.int64),
            ids=tuple(ids or (f"clip {number}" for number in range(count))),
            splits=tuple(splits),
            class_names=more.pop("class_names", tuple(f"class {label}" for label in range(max(labels) + 1))),
            provenance=provenance or {},
            **more,
        )

    return make
