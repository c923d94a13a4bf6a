"""Embeddings made elsewhere: npz or HDF5 files with `audio`, `visual` or `text`, and what else is known of them."""

import os
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from aadml.comparison.embeddings import Embeddings
from aadml.comparison.features import Modality
from aadml.feature_extraction.feature_file import UNLABELLED, check_modality, in_order
from aadml.feature_extraction.feature_file.columns import LISTED, PRESENT, Columns, read_columns
from aadml.feature_extraction.foreign import npz_arrays, open_hdf5
from aadml.feature_extraction.ground.archives import is_archive
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.registry import lookup
from aadml.feature_extraction.manifest import ALIASES
from aadml.retrieval.frame_word import FRAME_WORD

KEYS = ("label", "id", "split", "class_names")
FORMAT = "aadml-embeddings"
"""The attribute `format` of what `aadml embed` writes."""

ONCE = "once"
"""The attribute that names the modalities of which one row a label is ranked: sound that stands in a row a caption."""


def is_embeddings_file(path: str | os.PathLike[str]) -> bool:
    """Tell whether `path` was written by `aadml embed`."""
    try:
        with open_hdf5(path) as file:
            return bool(file.attrs.get("format") == FORMAT)
    except InputError:
        return False


def read_embeddings(
    path: str | os.PathLike[str], split: str | None = None, on_note: Callable[[str], None] = lambda note: None
) -> tuple[Embeddings, str]:
    """Read embeddings.

    Args:
        path: npz or HDF5 with `audio`, `visual` or `text` (n, d), or modalities of other names that `modalities`
            lists, two of them at least; optionally `label` (n,) integers or text, `id` (n,), `split` (n,),
            `class_names` (C,), `audio_present` (n,) where some clips lack a modality, and in HDF5 attributes
            `similarity` and `once`, the modalities of which one row a label is ranked.
            Without `label`, a row's own partner is what is relevant. Several captions a clip stand as `text`
            (n, c, d), or as `text` (m, d) with `text_row` (m,), the clip of each; then the other modalities are ranked
            once a clip, and a clip's own captions are what is relevant. `labels`, `ids` and `splits` will do too.
        split: which clips, where the file has a `split`; by default "test". A file without one is read whole.
        on_note: called with a line about what is left out.

    Returns:
        The embeddings, labels recoded to 0..C-1, and the name of the split: "all" where the file has none.

    Raises:
        InputError: no such file, another format, something missing or malformed, NaN, or no clip of that split.
    """
    place = Path(path)
    columns = read_columns(place)
    similarity, stated = _stated(place)
    left = [key for key in columns.left if key != "similarity"]
    arrays, once = _one_row_a_caption(columns)
    vectors = {
        modality: _matrix(arrays[modality], f"{place}: {modality}")
        for modality in in_order(key for key in arrays if key not in KEYS)
    }
    if len(vectors) < 2:
        found = ", ".join([*arrays, *left]) or "nothing"
        raise InputError(
            f"{place}: has {found}; wanted 'audio', 'visual', 'text' or what '{LISTED}' lists (two at least)"
        )
    if left:
        on_note(f"{place}: left out: {', '.join(left)} ('{LISTED}' lists modalities of other names)")
    widths = {modality: matrix.shape[1] for modality, matrix in vectors.items()}
    if similarity != FRAME_WORD and len(set(widths.values())) > 1:
        found = ", ".join(f"{modality} has {width}" for modality, width in widths.items())
        raise InputError(f"{place}: {found} dimensions, so they share no space; are these features? (`aadml embed`)")
    count = len(next(iter(vectors.values())))
    for modality, matrix in vectors.items():
        if len(matrix) != count:
            raise InputError(f"{place}: {len(matrix)} {modality} rows, but {count} of {next(iter(vectors))}")
    beside = {key: _column(arrays[key], f"{place}: {key}", count) for key in KEYS[:3] if key in arrays}
    codes, names = np.full(count, UNLABELLED, dtype=np.int64), tuple[str, ...]()
    if "label" in beside:
        codes, names = _classes(beside["label"], columns)
    ids = beside.get("id", np.arange(count)).astype(str)
    _check_unique(names, f"{place}: class_names")
    if "text" not in vectors:  # a clip with several captions stands in several rows
        _check_unique(ids.tolist(), f"{place}: id")
    masks = {m: _flags(there, count, f"{place}: {m}{PRESENT}") for m, there in columns.present.items()}
    vectors = {
        m: v if m not in masks else np.where(masks[m][:, None], v, 0).astype(v.dtype) for m, v in vectors.items()
    }
    kept, chosen = _rows(beside.get("split"), split, count, place)
    parts: dict[Modality, torch.Tensor] = {
        modality: torch.from_numpy(matrix[kept]) for modality, matrix in vectors.items()
    }
    try:
        labels = torch.from_numpy(codes[kept])
        own = {m: torch.from_numpy(there[kept]) for m, there in masks.items() if m in parts}
        read = Embeddings(parts, labels, tuple(ids[kept].tolist()), similarity, names, once or stated, present=own)
        check_once(read, stated, f"{ONCE}: ")
        return read, chosen
    except InputError as error:
        raise type(error)(f"{place}: {error}") from error


def _stated(path: Path) -> tuple[str, tuple[Modality, ...]]:
    """Read the similarity, and which modalities are ranked once a label, as far as a file says so."""
    if is_archive(path):
        return str(npz_arrays(path, ("similarity",)).get("similarity", "cosine")), ()
    with open_hdf5(path) as file:
        once = tuple(_text(name) for name in np.asarray(file.attrs.get(ONCE, ()), dtype=object).ravel().tolist())
        for name in once:
            check_modality(name, f"{path}: {ONCE}")
        return _text(file.attrs.get("similarity", "cosine")), once


def _flags(values: NDArray[Any], count: int, where: str) -> NDArray[np.bool_]:
    if values.shape != (count,) or values.dtype.kind not in "biu" or not np.isin(values, (0, 1)).all():
        raise InputError(f"{where}: {values.dtype} of shape {values.shape}; wanted booleans ({count},)")
    return values.astype(np.bool_)


def check_once(embeddings: Embeddings, once: Collection[str], place: str = "--once ") -> None:
    """Refuse to rank a modality once a label where the rows of a label differ in it.

    Args:
        embeddings: that are to be ranked.
        once: the modalities.
        place: where they were named, for the message.

    Raises:
        InputError: such a modality, or one that is not there.
    """
    first = np.unique(embeddings.labels.numpy(), return_index=True, return_inverse=True)[1:]
    for modality in once:
        known: dict[str, Modality] = {str(name): name for name in embeddings.vectors}
        vectors = embeddings.matrix(lookup(known, modality, "modality to rank once"))
        if not torch.equal(vectors, vectors[torch.from_numpy(first[0][first[1]])]):
            raise InputError(
                f"{place}{modality}: its rows of one label differ; only what stands in several equal rows (the sound "
                "of a clip with several captions, the clip as label) can be ranked once"
            )


def _one_row_a_caption(columns: Columns) -> tuple[dict[str, NDArray[Any]], tuple[Modality, ...]]:
    """Repeat clips for each of their captions; give the arrays and the modalities that repeat by it."""
    arrays = columns.features | {key: columns.beside[key] for key in KEYS if key in columns.beside}
    others: tuple[Modality, ...] = in_order(key for key in columns.features if key != "text")
    count = len(arrays[others[0]]) if others else 0
    several = columns.several_texts(count) if others else None
    if several is None:
        return arrays, ()
    text, rows = several
    labels = arrays.get("label", np.arange(count)).reshape(-1)
    if len(np.unique(labels)) < count:
        raise InputError(
            f"{columns.path}: with several captions a clip, each clip is a label of its own; leave 'label' out"
        )
    clips = {key: arrays[key] for key in (*others, "id", "split") if key in arrays} | {"label": labels}
    for key, values in clips.items():
        if len(values) != count:
            raise InputError(f"{columns.path}: {len(values)} {key} rows, but {count} of {others[0]}")
    return {key: values[rows] for key, values in clips.items()} | {"text": text}, others


def _words(values: NDArray[Any], where: str) -> tuple[str, ...]:
    try:
        return tuple(_text(value) for value in values.ravel().tolist())
    except UnicodeDecodeError as error:
        raise InputError(f"{where}: holds strings that are not UTF-8") from error


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _matrix(values: NDArray[Any], where: str) -> NDArray[Any]:
    if values.ndim != 2 or values.dtype.kind not in "fiu" or not values.size:
        raise InputError(f"{where}: {values.dtype} of shape {values.shape}; wanted numbers (n, d)")
    return values if values.dtype in (np.float32, np.float64) else values.astype(np.float32)


def _column(values: NDArray[Any], where: str, count: int) -> NDArray[Any]:
    flat = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
    if flat.shape != (count,):
        raise InputError(f"{where}: shape {values.shape}; wanted ({count},), one for each row of the vectors")
    if flat.dtype.kind in "fc" and not (np.isfinite(flat).all() and (flat == np.round(flat)).all()):
        raise InputError(f"{where}: holds fractions or NaN; wanted integers or text")
    if flat.dtype.kind in "SO":
        return np.asarray(_words(flat, where), dtype=str)
    return flat.astype(np.int64) if flat.dtype.kind == "f" else flat


def _check_unique(names: Sequence[str], where: str) -> None:
    if len(set(names)) < len(names):
        name, times = Counter(names).most_common(1)[0]
        raise InputError(f"{where}: {name!r} stands there {times} times; each name must stand for one thing")


def _classes(labels: NDArray[Any], columns: Columns) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Give labels 0..C-1 and the names of the classes: the file's where its labels are positions among them."""
    if columns.labels_are_positions():
        return labels.astype(np.int64), _words(columns.beside["class_names"], f"{columns.path}: class_names")
    values, codes = np.unique(labels, return_inverse=True)
    return codes.astype(np.int64), tuple(str(value) for value in values.tolist())


def _rows(splits: NDArray[Any] | None, split: str | None, count: int, place: Path) -> tuple[NDArray[np.int64], str]:
    if splits is None:
        return np.arange(count), "all"
    known = np.asarray([ALIASES.get(str(name), str(name)) for name in splits.tolist()])
    chosen = ALIASES.get(split or "test", split or "test")
    rows = np.flatnonzero(known == chosen)
    if not len(rows):
        raise InputError(f"{place}: no clip of the split '{chosen}'; there are {', '.join(np.unique(known).tolist())}")
    return rows.astype(np.int64), chosen
