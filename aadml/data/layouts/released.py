"""Imitations of the files of the audio-visual retrieval papers, for trials without the original files.

The original files `vegas_feature.h5` and `AVE_feature_updated_squence.h5` have the layout "split-keys". Their rows
are grouped by class, and the validation rows follow the train rows in the same arrays. The audio features are
outputs of VGGish after its last ReLU. The visual features are outputs of Inception-V3, whitened as in YouTube-8M.
"""

import os
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.feature_file.content import FeatureFile
from aadml.feature_extraction.feature_file.output import hdf5_output
from aadml.feature_extraction.ground.atomic import atomic_path
from aadml.feature_extraction.ground.json_values import texts

RELEASED = "split-keys"
"""The layout of the papers' files."""
ZEROS = 0.6
"""Share of zeros in each column of VGGish-like features."""
RIDGE = 1e-4
"""Constant added to the eigenvalues before the square root, as in YouTube-8M's whitening."""


def like_released(content: FeatureFile) -> FeatureFile:
    """Return features distributed like the released features: audio non-negative and sparse, visual whitened.

        audio_ij = max(0, a_ij - q_j)
        visual   = (v - mean) V / sqrt(eigenvalues + RIDGE)

    The audio features a have the ZEROS-quantile q_j in column j. The columns of V are the eigenvectors of the
    covariance of the visual features v.

    Args:
        content: "audio" (n, d) and "visual" (n, e); quantiles, mean and covariance are those of its train clips.
    """
    train = content.rows("train")
    audio, visual = content.features["audio"], content.features["visual"]
    silent = np.quantile(audio[train], ZEROS, axis=0).astype(np.float32)
    features = {"audio": np.maximum(audio - silent, 0), "visual": _whitened(visual, train)}
    origins = {modality: content.provenance[modality] for modality in _HOW}
    origin = {m: {**o, "notes": [*texts(o.get("notes")), f"drawn, {_HOW[m]}"]} for m, o in origins.items()}
    return replace(content, features=features, provenance=origin)


_HOW = {"audio": "like VGGish after its last ReLU", "visual": "like Inception-V3 after YouTube-8M's whitening"}


def write_split_keys(path: str | os.PathLike[str], content: FeatureFile) -> None:
    """Write features in the layout "split-keys", with rows in the order of the papers' files.

    Args:
        path: the HDF5 file.
        content: features; validation rows are written after train rows, and rows of each part are grouped by class.

    Raises:
        InputError: the file cannot be written.
    """
    parts = {"train": [*_by_class(content, "train"), *_by_class(content, "valid")], "test": _by_class(content, "test")}
    with atomic_path(path) as temporary, hdf5_output(temporary) as file:
        for part, rows in parts.items():
            for modality, values in content.features.items():
                file.dataset(f"{modality}_{part}", data=values[rows])
            file.dataset(f"lab_{part}", data=content.labels[rows][:, None])


def _by_class(content: FeatureFile, split: str) -> list[int]:
    rows = content.rows(split)
    ordered: list[int] = rows[np.argsort(content.labels[rows], kind="stable")].tolist()
    return ordered


def _whitened(values: NDArray[np.float32], train: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return values (n, e), whitened by the mean and covariance of the rows `train`.

    The columns are in descending order of the eigenvalues of the covariance.
    """
    mean = values[train].mean(0, dtype=np.float64)
    centered = values - mean
    eigenvalues, vectors = np.linalg.eigh(centered[train].T @ centered[train] / len(train))
    turned = centered @ vectors[:, ::-1] / np.sqrt(eigenvalues[::-1] + RIDGE)
    return np.asarray(turned, dtype=np.float32)
