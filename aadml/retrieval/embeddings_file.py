"""Reader of npz and HDF5 files with embeddings, from `aadml embed` or from other programs."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from aadml.comparison.arrays import class_codes, not_whole, to_flags, unlabelled_note
from aadml.comparison.embeddings import Embeddings
from aadml.comparison.features import Modality
from aadml.feature_extraction.feature_file.checks import check_unique
from aadml.feature_extraction.feature_file.columns import ALL_LABELS, LISTED, PRESENT, Columns, read_columns
from aadml.feature_extraction.feature_file.content import UNLABELLED
from aadml.feature_extraction.feature_file.names import check_modality, in_order
from aadml.feature_extraction.foreign.hdf5 import open_hdf5
from aadml.feature_extraction.foreign.numpy_files import npz_arrays
from aadml.feature_extraction.foreign.tables import is_table
from aadml.feature_extraction.ground.archives import is_archive
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import parse_object, texts
from aadml.feature_extraction.ground.strings import as_text
from aadml.feature_extraction.manifest import ALIASES
from aadml.retrieval.frame_word import FRAME_WORD
from aadml.retrieval.galleries import check_once

KEYS = ("label", "id", "split", "class_names")
FORMAT = "aadml-embeddings"
"""Attribute `format` of files that `aadml embed` writes."""

MODEL = "model"
"""Attribute with the facts of the model, as JSON."""

ONCE = "once"
"""Attribute that lists the modalities in which one row per label is ranked, such as sound repeated for each caption."""


def is_embeddings_file(path: str | os.PathLike[str]) -> bool:
    """Return whether the file at `path` was written by `aadml embed`."""
    try:
        with open_hdf5(path) as file:
            return bool(file.attrs.get("format") == FORMAT)
    except InputError:
        return False


def model_classes(path: str | os.PathLike[str]) -> list[str] | None:
    """Return the classes of the model that computed the embeddings in a file; None for a file without a model.

    Raises:
        InputError: the file cannot be read, or its model is damaged.
    """
    if is_archive(Path(path)) or is_table(Path(path)):
        return None
    with open_hdf5(path) as file:
        facts = file.attrs.get(MODEL)
    return None if facts is None else texts(parse_object(as_text(facts), f"{path}: {MODEL}").get("class_names"))


def read_embeddings(
    path: str | os.PathLike[str], split: str | None = None, on_note: Callable[[str], None] = lambda note: None
) -> tuple[Embeddings, str]:
    """Read embeddings from an npz or HDF5 file.

    Args:
        path: npz or HDF5 file with at least two modalities (n, d): `audio`, `visual`, `text`, or a name listed in
            `modalities`. Optional arrays are `label` (n,) integers or text, `id` (n,), `split` (n,), `class_names`
            (C,), and a mask (n,) such as `audio_present` for each modality that some clips lack. With `label` and
            `class_names`, the optional `labels` (n, C) marks all classes of each clip with 1. In this case, `label`
            is the first of these classes. The optional `similarity` is an array in npz and an attribute in HDF5.
            The HDF5 attribute `once` lists the modalities in which one row per label is ranked. Without `label`,
            only the other modalities of the same row are relevant. Several captions per clip are stored as `text`
            (n, c, d), or as `text` (m, d) with `text_row` (m,), the number of the clip of each caption. Each clip is
            then ranked once in the modalities other than `text`, and its captions are relevant to the clip. The names
            `labels`, `ids` and `splits` are accepted for `label`, `id` and `split`.
        split: split to read, if the file has `split`; by default "test". A file without splits is read completely.
        on_note: called with messages about ignored arrays, and about clips without a class.

    Returns:
        Embeddings in float32, and the name of the split. The name is "all" if the file has no splits. Labels are
        0..C-1, and UNLABELLED where `label` is -1 or empty. In a file without `label` but with several captions per
        clip, each clip is a separate class. In a file with neither, all labels are UNLABELLED.

    Raises:
        InputError: the file is absent or malformed, lacks data or the split, or contains NaN or infinity.
    """
    place = Path(path)
    columns = read_columns(place)
    similarity, attribute = _attributes(place)
    arrays, present, repeated = _one_row_per_caption(columns)
    marks = None if repeated else columns.all_labels
    ignored = [key for key in columns.left if key != "similarity"]
    ignored += [ALL_LABELS] if repeated and columns.all_labels is not None else []
    vectors = _vectors(arrays, place, ignored, shared_space=similarity != FRAME_WORD)
    if ignored:
        on_note(
            f"{place}: arrays with unknown names were ignored ({', '.join(ignored)}); to read an array as a modality, "
            f"add its name to '{LISTED}'"
        )
    count = len(next(iter(vectors.values())))
    beside = {key: _column(arrays[key], f"{place}: {key}", count) for key in KEYS[:3] if key in arrays}
    codes, names = np.full(count, UNLABELLED, dtype=np.int64), tuple[str, ...]()
    if "label" in beside:
        codes, names = _classes(beside["label"], columns)
        for note in [] if columns.labels_are_positions() else unlabelled_note(codes):
            on_note(f"{place}: {note}")
    ids = beside.get("id", np.arange(count)).astype(str)
    check_unique(names, f"{place}: class_names")
    if "text" not in vectors:  # a clip with several captions has several rows
        check_unique(ids.tolist(), f"{place}: id")
    masks = {
        m: to_flags(_column(flags, where := f"{place}: {m}{PRESENT}", count), where).numpy()
        for m, flags in present.items()
    }
    rows, chosen = _rows(beside.get("split"), split, count, place)
    vectors = {modality: matrix[rows] for modality, matrix in vectors.items()}
    for modality in masks.keys() & vectors.keys():
        vectors[modality][~masks[modality][rows]] = 0
    try:
        embeddings = Embeddings(
            {modality: torch.from_numpy(matrix) for modality, matrix in vectors.items()},
            torch.from_numpy(codes[rows]),
            tuple(ids[rows].tolist()),
            similarity,
            names,
            repeated or attribute,
            all_labels=None if marks is None else torch.from_numpy(marks[rows]),
            present={m: torch.from_numpy(flags[rows]) for m, flags in masks.items() if m in vectors},
        )
        check_once(embeddings, attribute, f"{ONCE}: ")
    except InputError as error:
        raise type(error)(f"{place}: {error}") from error
    return embeddings, chosen


def _vectors(
    arrays: dict[str, NDArray[Any]], place: Path, ignored: Sequence[str], *, shared_space: bool
) -> dict[Modality, NDArray[Any]]:
    """Return the checked matrix of each modality."""
    modalities = in_order(key for key in arrays if key not in KEYS)
    if len(modalities) < 2:
        names = ", ".join([*arrays, *ignored]) or "none"
        raise InputError(
            f"{place} has fewer than two modalities (its arrays: {names}); store at least two of 'audio', 'visual', "
            f"'text' or other arrays with names listed in '{LISTED}'"
        )
    vectors = {modality: _matrix(arrays[modality], f"{place}: {modality}") for modality in modalities}
    if shared_space and len({matrix.shape[1] for matrix in vectors.values()}) > 1:
        widths = ", ".join(f"{modality} has {matrix.shape[1]} dimensions" for modality, matrix in vectors.items())
        raise InputError(
            f"{place}: {widths}, so the modalities do not share a space; run `aadml embed` on features first"
        )
    _check_rows(vectors, place)
    return vectors


def _check_rows(arrays: Mapping[str, NDArray[Any]], place: str | Path) -> None:
    """Check that all arrays have as many rows as the first."""
    first, count = next((key, len(values)) for key, values in arrays.items())
    for key, values in arrays.items():
        if len(values) != count:
            raise InputError(
                f"{place} has {len(values)} {key} rows, but {count} {first} rows; store equal numbers of rows"
            )


def _attributes(path: Path) -> tuple[str, tuple[Modality, ...]]:
    """Return the similarity ("cosine" if the file has none) and the modalities ranked once per label."""
    if is_archive(path):
        return str(npz_arrays(path, ("similarity",)).get("similarity", "cosine")), ()
    with open_hdf5(path) as file:
        once = tuple(as_text(name) for name in np.asarray(file.attrs.get(ONCE, ()), dtype=object).ravel().tolist())
        for name in once:
            check_modality(name, f"{path}: {ONCE}")
        return as_text(file.attrs.get("similarity", "cosine")), once


def _one_row_per_caption(
    columns: Columns,
) -> tuple[dict[str, NDArray[Any]], dict[str, NDArray[Any]], tuple[Modality, ...]]:
    """Return arrays and masks with one row per caption, and the modalities whose rows are repeated.

    Clips without captions follow, one row each. Without several captions per clip, the arrays and masks are unchanged,
    and no modality is repeated.
    """
    arrays = columns.features | {key: columns.beside[key] for key in KEYS if key in columns.beside}
    others: tuple[Modality, ...] = in_order(key for key in columns.features if key != "text")
    count = len(arrays[others[0]]) if others else 0
    several = columns.several_texts(count) if others else None
    if several is None:
        return arrays, columns.present, ()
    text, rows = several
    labels = arrays.get("label", np.arange(count)).reshape(-1)
    values, counts = np.unique(labels, return_counts=True)
    if len(values) < count:
        raise InputError(
            f"{columns.path}: several clips have the label '{as_text(values[counts.argmax()])}', but a file with "
            "several captions per clip needs a separate class for each clip; remove 'label'"
        )
    clips = {key: arrays[key] for key in (*others, "split") if key in arrays}
    clips |= {"label": labels, "id": arrays.get("id", np.arange(count))}
    _check_rows(clips, columns.path)
    rows = np.concatenate([rows, np.setdiff1d(np.arange(count), rows)])
    masks = columns.present.items()
    present = {m: _column(flags, f"{columns.path}: {m}{PRESENT}", count)[rows] for m, flags in masks}
    if without := len(rows) - len(text):
        text = np.concatenate([text, np.zeros((without, *text.shape[1:]), text.dtype)])
        present["text"] = present.get("text", np.ones(len(rows), dtype=bool))
        present["text"][-without:] = 0
    return {key: values[rows] for key, values in clips.items()} | {"text": text}, present, others


def _words(values: NDArray[Any], where: str) -> tuple[str, ...]:
    try:
        return tuple(value.decode() if isinstance(value, bytes) else str(value) for value in values.ravel().tolist())
    except UnicodeDecodeError as error:
        raise InputError(f"{where} contains strings that are not UTF-8; encode the strings as UTF-8") from error


def _matrix(values: NDArray[Any], where: str) -> NDArray[Any]:
    if values.ndim != 2 or values.dtype.kind not in "fiu" or not values.size:
        raise InputError(
            f"{where} has type {values.dtype} and shape {values.shape}; pass numbers of shape (n, d), with "
            "n and d above 0"
        )
    return values.astype(np.float32, copy=False)  # the precision of audits and checksums


def _column(values: NDArray[Any], where: str, count: int) -> NDArray[Any]:
    flat = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
    if flat.shape != (count,):
        raise InputError(
            f"{where} has shape {values.shape}; pass an array of shape ({count},), one value per row of the vectors"
        )
    if flat.dtype.kind in "fc" and (wrong := not_whole(flat)).size:
        raise InputError(f"{where} contains {wrong[0]}, which is not a whole number up to 2**53; pass integers or text")
    if flat.dtype.kind in "SO":
        return np.asarray(_words(flat, where), dtype=str)
    return flat.astype(np.int64) if flat.dtype.kind == "f" else flat


def _classes(labels: NDArray[Any], columns: Columns) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Return labels (n,) and class names (C,). A label is in 0..C-1, or UNLABELLED for a clip without a class.

    If the labels are positions in the array `class_names` of the file, the labels and this array are returned.
    Otherwise, the class names are the sorted distinct labels.
    """
    if columns.labels_are_positions():
        return labels.astype(np.int64), _words(columns.beside["class_names"], f"{columns.path}: class_names")
    return class_codes(labels)


def _rows(splits: NDArray[Any] | None, split: str | None, count: int, place: Path) -> tuple[NDArray[np.int64], str]:
    if splits is None:
        return np.arange(count), "all"
    known = np.asarray([ALIASES.get(str(name), str(name)) for name in splits.tolist()])
    chosen = ALIASES.get(split or "test", split or "test")
    rows = np.flatnonzero(known == chosen)
    if not len(rows):
        raise InputError(
            f"{place} has no clips of the split '{chosen}'; choose from {', '.join(np.unique(known).tolist())}"
        )
    return rows.astype(np.int64), chosen
