"""npz or HDF5 with a row per clip: `audio`, `visual`, `text` (two at least), `label`, `split`, and optionally `id`.

`labels`, `splits` and `ids` are read as `label`, `split` and `id`.

Modalities of other names are those that `modalities` lists, as in what `aadml embed` writes, or that are named.

Several texts a clip stand as `text` (n, c, d), or as `text` (m, d) with `text_row` (m,), the clip of each: the same
file that `aadml evaluate --embeddings` takes.
"""

from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aadml.data.layouts.arrays_on_disk import assemble, matrix, text
from aadml.data.layouts.layout import Layout, ReadOptions, same_rows
from aadml.feature_extraction.feature_file import UNLABELLED, FeatureFile, Texts, check, in_order
from aadml.feature_extraction.feature_file.columns import PRESENT, read_columns
from aadml.feature_extraction.foreign import require_keys
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.manifest import ALIASES, SPLITS

KEYS = ("audio", "visual", "label")
_A_ROW_A_CLIP = ("label", "split", "id")


def read(path: Path, options: ReadOptions) -> FeatureFile:
    """Read features in columns; which clips are for what, `split` says.

    Raises:
        InputError: a missing key, pickled values, columns of unequal length, or another word for a split.
    """
    columns = read_columns(path, options.views)
    arrays, beside, present = columns.features, columns.beside, columns.present
    found = in_order(arrays)
    if len(found) < 2:
        require_keys(path, KEYS, [*arrays, *beside])
    clips, texts = len(arrays[next(name for name in found if name != "text")]), None
    if several := columns.several_texts(clips):
        texts = Texts.sorted(matrix(several[0], f"{path}: text"), several[1])
        arrays["text"], there = texts.first_of_each(clips)
        present |= {} if there.all() else {"text": there}
    if "split" not in beside and options.undivided:
        beside["split"] = np.full(len(arrays[found[0]]), "train")
    if "split" not in beside:
        raise InputError(
            f"{path}: has no 'split'; add an array with train, valid or test for each clip, or draw one: "
            f"`aadml convert {quote(str(path))} F.h5 --split random:0.7/0.1/0.2`"
        )
    chosen = {name: arrays[name] for name in found} | {key: beside[key] for key in _A_ROW_A_CLIP if key in beside}
    chosen |= {f"{name}{PRESENT}": there for name, there in present.items()}
    same_rows(path, {name: array.shape[0] if array.ndim else 0 for name, array in chosen.items()})
    names, labels = beside.get("class_names"), beside.get("label")
    words = None if names is None else tuple(text(name) for name in names.ravel().tolist())
    positions = not options.class_names and columns.labels_are_positions()
    one_hot = words and labels is not None and labels.shape[1:] == (len(words),)
    content = assemble(
        path,
        "columns",
        features={modality: arrays[modality] for modality in found},
        labels=None if positions else labels,
        splits=_splits(path, beside["split"], len(arrays[found[0]])),
        ids=[text(value) for value in beside["id"].ravel().tolist()] if "id" in beside else None,
        class_names=options.class_names or (words if one_hot else None),
        present=present,
        texts=texts,
        notes=[f"left out: {', '.join(columns.left)} (--view NAME=KEY takes an array as a modality)"]
        if columns.left
        else [],
    )
    return _labelled(content, labels, words, path) if positions and labels is not None and words else content


def _splits(path: Path, column: NDArray[Any], clips: int) -> list[str]:
    words = [text(value) for value in column.ravel().tolist()]
    splits = [ALIASES.get(word, word) for word in words]
    wrong = next((word for word, split in zip(words, splits, strict=True) if split not in SPLITS), None)
    if wrong is not None or len(words) != clips:
        raise InputError(
            f"{path}: 'split': {wrong!r} given; one of {', '.join((*SPLITS, *ALIASES))} per clip is possible"
        )
    return splits


def _labelled(content: FeatureFile, labels: NDArray[Any], names: tuple[str, ...], path: Path) -> FeatureFile:
    """Label content by positions among names, of which those are kept that a clip has."""
    flat = labels.reshape(-1).astype(np.int64)
    present = np.unique(flat[flat != UNLABELLED])
    codes = np.where(flat == UNLABELLED, UNLABELLED, np.searchsorted(present, flat))
    labelled = replace(content, labels=codes, class_names=tuple(names[position] for position in present))
    check(labelled, str(path))
    return labelled


COLUMNS = Layout("npz", KEYS, read, ("views",))
"""npz with audio, visual, label or none, split ('train', 'valid', 'test'), and optionally id, text, class_names."""

COLUMNS_H5 = Layout("h5", KEYS, read, ("views",))
"""HDF5 with the keys of the npz: audio, visual, label, split, as `aadml embed` writes them."""
