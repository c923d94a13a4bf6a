"""The features of AVE's release: `audio_feature.h5`, `visual_feature.h5`, `labels.h5`, each with key `avadataset`.

The shapes are (clips, 10, 128) for audio, (clips, 10, 7, 7, 512) for visual, and (clips, 10, 29) for labels. The
axis of length 10 contains the seconds of a clip. The last of the 29 classes is background.

Further files are optional. `train_order.h5`, `val_order.h5` and `test_order.h5` (key `order`) contain the row
numbers of the splits, and `Annotations.txt` contains ids and classes. The names of the feature files and of the
label file may be longer before `.h5`, as in `audio_feature_noisy.h5`.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from aadml.data.ave import ANNOTATIONS, ORDER_FILES, class_names_of_columns, read_annotations, read_orders
from aadml.data.layouts.layout import Layout, LayoutArrays, same_rows
from aadml.feature_extraction.foreign.hdf5 import open_hdf5, require_keys
from aadml.feature_extraction.ground.errors import InputError

KEYS = ("audio_feature*.h5", "labels*.h5", "visual_feature*.h5")
_BLOCK = 64  # number of clips pooled at once, since the pictures of all clips do not fit into memory


def read_ave_h5(path: Path, _: Mapping[str, str]) -> LayoutArrays:
    """Read AVE's features, averaged over seconds and positions: audio (n, 128) and visual (n, 512).

    The visual features are optional. The class of a clip is the most frequent class of its seconds other than
    background, or background if there is no other class.

    Raises:
        InputError: a file or key is missing or ambiguous, or the files are invalid or inconsistent.
    """
    files = {pattern: sorted(path.glob(pattern)) for pattern in KEYS}
    for pattern, matches in files.items():
        if len(matches) > 1 or (not matches and pattern != KEYS[2]):
            names = ", ".join(file.name for file in matches) or "no such file"
            raise InputError(f"{path} must contain one file '{pattern}', but contains {names}; add or remove files")
    sources = {name: file[0] for name, file in zip(("audio", "label", "visual"), files.values(), strict=True) if file}
    features = {name: _pooled(file) for name, file in sources.items()}
    shares = features.pop("label")
    same_rows(path, {sources[name].name: values for name, values in (*features.items(), ("label", shares))})
    codes = _classes(shares, sources["label"])
    divided = any((path / name).is_file() for name in ORDER_FILES.values())
    splits = read_orders(path, len(codes)) if divided else ["train"] * len(codes)
    annotations = read_annotations(path / ANNOTATIONS) if (path / ANNOTATIONS).is_file() else None
    foreign = annotations is not None and len(annotations) != len(codes)
    annotations = None if foreign else annotations
    columns = class_names_of_columns(codes, annotations, shares.shape[1])
    return LayoutArrays(
        features,
        codes,
        splits,
        ids=[f"{row:04d}" if annotations is None else annotations[row].name for row in range(len(codes))],
        class_names=tuple(columns[code] for code in np.unique(codes).tolist()),
        notes=[
            *([] if divided else ["there are no order files, so every clip counts as train"]),
            *([] if "visual" in features else ["there is no visual feature file"]),
            *([f"{ANNOTATIONS} is not used, because it does not have one line per clip"] if foreign else []),
        ],
        sources=list(sources.values()),
    )


def _pooled(file: Path) -> NDArray[np.float32]:
    """Return the mean (n, d) over every axis between the first and the last, computed by blocks of clips."""
    with open_hdf5(file) as store:
        require_keys(file, ("avadataset",), list(store))
        data: Any = store["avadataset"]
        if not isinstance(data, h5py.Dataset) or data.ndim < 2 or data.dtype.kind not in "fiub":
            kind = f"of type {data.dtype} and shape {data.shape}" if isinstance(data, h5py.Dataset) else "a group"
            raise InputError(f"{file}: 'avadataset' is {kind}; pass an array of numbers (clips, seconds, ...)")
        between = tuple(range(1, data.ndim - 1))
        blocks = [
            np.asarray(data[start : start + _BLOCK], dtype=np.float64).mean(axis=between)
            for start in range(0, len(data), _BLOCK)
        ]
    if not blocks:
        raise InputError(f"{file} contains no clips; pass AVE's files")
    return np.concatenate(blocks).astype(np.float32)


def _classes(shares: NDArray[np.float32], file: Path) -> NDArray[np.int64]:
    wrong = shares[~np.isfinite(shares) | (shares < 0)]
    if shares.shape[1] < 2 or len(wrong):
        few = f"have fewer than two columns ({shares.shape[1]})"
        problem = f"of a clip have the mean {wrong[0]:g}" if len(wrong) else few
        raise InputError(f"{file}: the labels {problem}; pass two or more columns of zeros and ones")
    foreground = shares[:, :-1]
    codes = np.where(foreground.max(axis=1) > 0, foreground.argmax(axis=1), shares.shape[1] - 1)
    return np.asarray(codes, dtype=np.int64)


AVE_H5 = Layout("ave-h5", "folder", KEYS, read_ave_h5)
"""Folder with AVE's audio_feature.h5, visual_feature.h5, labels.h5 (key avadataset) and order files."""
