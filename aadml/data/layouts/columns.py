"""Features with one row per clip, stored as columns of an npz file, an HDF5 file or a table.

Two or more columns are modalities. The columns `label`, `split` and `id` are optional.

`labels`, `splits` and `ids` are read as `label`, `split` and `id`. Beside `label` and `class_names`, `labels` (n, C)
marks all classes of each clip with 1, as in files of `aadml embed`.

Modalities other than `audio`, `visual` and `text` are either named by the user, or listed in `modalities` as in
files of `aadml embed`.

Several texts per clip are stored in one of two forms, which `aadml evaluate --embeddings` also reads. In the first
form, `text` (n, c, d) contains c texts for each of n clips. In the second form, `text` (m, d) contains all texts,
and `text_row` (m,) contains the clip of each text.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from shlex import quote

import numpy as np

from aadml.data.layouts.arrays_on_disk import matrix, read_split_column, text
from aadml.data.layouts.layout import Layout, LayoutArrays, same_rows
from aadml.feature_extraction.feature_file.columns import PRESENT, TEXT_ROW, Columns, read_columns
from aadml.feature_extraction.feature_file.content import Texts
from aadml.feature_extraction.feature_file.names import in_order
from aadml.feature_extraction.foreign.media_tables import has_media
from aadml.feature_extraction.foreign.tables import table_files
from aadml.feature_extraction.ground.errors import InputError

KEYS = ("audio", "visual", "label")
_ROWS = ("label", "split", "id")


def read(path: Path, views: Mapping[str, str]) -> LayoutArrays:
    """Read features in columns; the column `split` divides the clips.

    Raises:
        InputError: the file cannot be read, has fewer than two modalities, or has invalid or inconsistent columns.
    """
    columns = _one_row_per_clip(read_columns(path, views))
    arrays, beside, present = columns.features, columns.beside, columns.present
    modalities = in_order(arrays)
    if len(modalities) < 2:
        raise InputError(_too_few(path, columns))
    clips, texts = len(arrays[next(name for name in modalities if name != "text")]), None
    if several := columns.several_texts(clips):
        texts = Texts.sorted(matrix(several[0], f"{path}: text"), several[1])
        arrays["text"], has_text = texts.first_of_each(clips)
        present |= {} if has_text.all() else {"text": has_text}
    rows = {name: arrays[name] for name in modalities} | {key: beside[key] for key in _ROWS if key in beside}
    same_rows(path, rows | {f"{name}{PRESENT}": mask for name, mask in present.items()})
    labels = beside.get("label")
    names = tuple(text(name) for name in beside["class_names"].ravel().tolist()) if "class_names" in beside else ()
    positional, marks = columns.labels_are_positions(), columns.all_labels
    one_hot = names and labels is not None and labels.shape[1:] == (len(names),)
    unused = f"arrays were left out: {', '.join(columns.left)} (--view NAME=KEY reads an array as a modality)"
    return LayoutArrays(
        {name: arrays[name] for name in modalities},
        labels,
        read_split_column(beside["split"], f"{path}: 'split'") if "split" in beside else None,
        ids=[text(value) for value in beside["id"].ravel().tolist()] if "id" in beside else None,
        class_names=names if positional or one_hot else None,
        positional=positional,
        present=present,
        texts=texts,
        all_labels=marks if marks is not None and (marks.sum(axis=1) > 1).any() else None,
        notes=[unused] if columns.left else [],
        sources=table_files(path) if path.is_dir() else (),
    )


def _too_few(path: Path, columns: Columns) -> str:
    present, missing = [*columns.features], "visual" if "audio" in columns.features else "audio"
    arrays = ", ".join([*present, *columns.beside, *columns.left][:30]) or "none"
    return (
        f"{path} contains {f'only the modality {present[0]}' if present else 'no modality'}, but two modalities are "
        f"needed (arrays: {arrays}); rename an array to {missing}, or choose an array: "
        f"`aadml convert {quote(str(path))} F.h5 --{missing} {columns.left[0] if columns.left else 'ARRAY'}`"
    )


def read_table(path: Path, views: Mapping[str, str]) -> LayoutArrays:
    """Read features in the columns of a table; see `read`.

    Raises:
        InputError: the table contains media instead of features, or the features are invalid (see `read`).
    """
    try:
        return read(path, views)
    except InputError as error:
        if has_media(path):
            raise InputError(
                f"{path} contains media, not features; run `aadml extract {quote(str(path))} -o F.h5` first"
            ) from error
        raise


def _one_row_per_clip(columns: Columns) -> Columns:
    """Merge rows with the same id into a clip with several texts.

    `aadml embed` writes such rows for several captions of a clip. The columns stay unchanged if rows with the same
    id differ in more than the text.
    """
    names, words = columns.beside.get("id"), columns.features.get("text")
    if names is None or words is None or TEXT_ROW in columns.beside:
        return columns
    if words.ndim != 2 or names.shape != words.shape[:1]:
        return columns
    _, first, row = np.unique([text(name) for name in names.tolist()], return_index=True, return_inverse=True)
    if len(first) == len(names):
        return columns
    clips, clip = np.sort(first), np.argsort(np.argsort(first))[row]
    others = {m: values for m, values in columns.features.items() if m != "text"}
    masks = {m: columns.present.get(m, np.ones(len(names), dtype=bool)) for m in columns.features}
    beside = {key: columns.beside[key] for key in _ROWS if key in columns.beside}
    same = [values[clips][clip] == values for values in beside.values() if values.shape[:1] == names.shape]
    for modality, values in others.items():
        equal = values == values[clips][clip]
        same.append((masks[modality] == 0) | equal.reshape(len(values), -1).all(axis=1))
    if columns.all_labels is not None:
        same.append((columns.all_labels[clips][clip] == columns.all_labels).all(axis=1))
    if not all(np.all(values) for values in same) or not masks["text"][clips].any():
        return columns
    has = np.flatnonzero(masks["text"])
    return replace(
        columns,
        features={**{m: values[clips] for m, values in others.items()}, "text": words[has]},
        beside={**columns.beside, **{key: values[clips] for key, values in beside.items()}, TEXT_ROW: clip[has]},
        present={m: mask[clips] for m, mask in columns.present.items() if m != "text"},
        all_labels=None if columns.all_labels is None else columns.all_labels[clips],
    )


COLUMNS = Layout("columns", "npz", KEYS, read, takes_views=True)
"""npz with audio, visual, split ('train', 'valid', 'test'), and optionally label, id, text, class_names."""

COLUMNS_H5 = Layout("columns", "h5", KEYS, read, takes_views=True)
"""HDF5 with the keys of the npz: audio, visual, label, split, as `aadml embed` writes them."""

TABLE = Layout("table", "table", KEYS, read_table, takes_views=True)
"""Parquet, a data set saved by `datasets`, or a WebDataset tar (KEY.audio.npy, KEY.cls): the columns of the npz."""
