"""Assembly of foreign arrays into a checked `FeatureFile`: recoded labels, named splits, recorded origin."""

import os
import re
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aadml.comparison.arrays import class_codes, not_whole, to_flags, unlabelled_note
from aadml.data.layouts.layout import LayoutArrays
from aadml.data.splitting.division import DEFAULT_RULE
from aadml.data.splitting.folds import read_lines
from aadml.feature_extraction.feature_file.checks import check, check_unique
from aadml.feature_extraction.feature_file.content import UNLABELLED, FeatureFile
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.file_content import file_digest
from aadml.feature_extraction.ground.strings import as_text
from aadml.feature_extraction.manifest import ALIASES, SPLITS


def assemble(
    place: str | os.PathLike[str],
    layout: str,
    arrays: LayoutArrays,
    class_names: Sequence[str] | None = None,
    *,
    undivided: bool = False,
) -> FeatureFile:
    """Return the arrays of a data set as the checked content of a feature file.

    Args:
        place: the path that was read, for messages.
        layout: name of the layout, recorded in the provenance.
        arrays: the arrays as read.
        class_names: names of the classes in the order of the sorted label values; by default the names in `arrays`.
            Labels that are text keep their names, which must be in this list.
        undivided: accept clips without splits, which then count as train.

    Returns:
        The content, with labels recoded to 0..C-1 in the order of the original values, and a note on labels that are
        -1 or empty.

    Raises:
        InputError: clips without splits if `undivided` is False, or invalid or inconsistent arrays or class names.
    """
    splits = arrays.splits
    if splits is None:
        if not undivided:
            raise InputError(
                f"{place} has no 'split'; add an array or column of this name with train, valid or test per clip, "
                f"or draw splits: `aadml convert {quote(str(place))} F.h5 --split {DEFAULT_RULE}`"
            )
        splits = ["train"] * len(next(iter(arrays.features.values())))
    codes, values, notes = _classes(arrays, len(splits), class_names, str(place))
    notes = [*arrays.notes, *([] if arrays.labels is None or arrays.positional else unlabelled_note(codes)), *notes]
    hashes = {Path(source).name: file_digest(source) for source in (arrays.sources or (place,))}
    masks = {name: to_flags(mask, f"{place}: {name}_present").numpy() for name, mask in arrays.present.items()}
    features = {name: matrix(values, f"{place}: {name}") for name, values in arrays.features.items()}
    features |= {name: np.where(mask[:, None], features[name], np.float32(0)) for name, mask in masks.items()}
    marks = arrays.all_labels
    content = FeatureFile(
        features=features,
        present={name: mask for name, mask in masks.items() if not mask.all()},
        labels=codes,
        all_labels=None if marks is None else marks[:, marks.any(axis=0)].astype(np.uint8),
        ids=tuple(arrays.ids) if arrays.ids is not None else _row_names(splits),
        splits=tuple(splits),
        class_names=values,
        provenance={
            name: {"extractor": "unknown", "layout": layout, "sources": hashes, "notes": notes} for name in features
        },
        texts=arrays.texts,
    )
    check(content, str(place))
    return content


def _classes(
    arrays: LayoutArrays, count: int, class_names: Sequence[str] | None, place: str
) -> tuple[NDArray[np.int64], tuple[str, ...], list[str]]:
    """Return the class codes of `count` clips, the names of the classes in use, and notes."""
    if arrays.labels is None:
        codes, values = np.full(count, UNLABELLED, dtype=np.int64), tuple[str, ...]()
    elif arrays.positional and (class_names is None or arrays.all_labels is not None):
        positions, marks = arrays.labels.reshape(-1).astype(np.int64), arrays.all_labels
        used = np.unique(positions[positions != UNLABELLED]) if marks is None else np.flatnonzero(marks.any(axis=0))
        codes = np.where(positions == UNLABELLED, UNLABELLED, np.searchsorted(used, positions))
        named = _renamed(tuple(map(str, used)), class_names or arrays.class_names or (), place) if len(used) else ()
        return codes, named, []
    else:
        codes, values = recode(arrays.labels, f"{place}: labels")
        if class_names is not None and arrays.labels.dtype.kind in "OSU" and not all(map(_is_number, values)):
            _check_named(values, class_names, place)
            return codes, values, []
    names = class_names or (None if arrays.positional else arrays.class_names)
    if names is None:
        return codes, values, []
    renamed = _renamed(values, names, place)
    is_flat = arrays.labels is not None and arrays.labels.size == count
    if len(names) == len(values) or "0" in values or not is_flat:
        return codes, renamed, []
    return codes, renamed, [f"no label is 0, and class names are counted from 0: label {values[0]} is '{renamed[0]}'"]


def recode(labels: NDArray[Any], place: str) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Return class numbers (n,) from 0 to C-1, and the names of the C classes.

    The names are the sorted label values, or for one-hot labels the numbers of the columns in use. A clip with
    label -1 or an empty text has no class, and its class number is UNLABELLED.

    Args:
        labels: (n,), (n, 1) or one-hot (n, k); integers, whole floats or text.
        place: source of the labels, for messages.

    Raises:
        InputError: the shape, the type or a value is not supported, or a one-hot row does not have exactly one
            class.
    """
    flat = labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels
    if flat.ndim == 2:
        return _from_one_hot(flat, place)
    if flat.ndim != 1:
        raise InputError(
            f"{place} have shape {labels.shape}; pass an array (clips,), (clips, 1) or one-hot (clips, classes)"
        )
    if flat.dtype.kind in "OSU":
        words = [text(value) for value in flat.tolist()]
        numbers = all(map(_is_number, words))
        flat = np.asarray(words, dtype=np.int64 if numbers else np.str_)
    elif flat.dtype.kind == "f":
        wrong = not_whole(flat)
        if len(wrong):
            raise InputError(
                f"{place} contain {wrong[0]:g}, which is not a whole number up to 2**53; pass integers or text, with "
                "-1 or empty text for a clip without a label"
            )
        flat = flat.astype(np.int64)
    elif flat.dtype.kind not in "iub":
        raise InputError(f"{place} contain values of type {flat.dtype}; pass whole numbers or text")
    return class_codes(flat)


def matrix(values: NDArray[Any], place: str) -> NDArray[np.float32]:
    """Return numbers as float32 (n, d).

    Raises:
        InputError: `values` are not numbers, or do not have two axes.
    """
    if values.dtype.kind not in "fiub":
        raise InputError(f"{place} contains values of type {values.dtype}; pass numbers")
    if values.ndim != 2:
        raise InputError(
            f"{place} has shape {values.shape}; pass an array (clips, dimensions), such as the mean over time"
        )
    with np.errstate(over="ignore"):  # a float64 too large for float32 becomes infinite, and `check` raises an error
        return np.ascontiguousarray(values, dtype=np.float32)


def text(value: Any) -> str:
    """Return bytes or any other value as text, without NULs and spaces at the ends."""
    return as_text(value).strip("\0 ")


def read_split_column(values: NDArray[Any], place: str, numbers: Mapping[str, str] | None = None) -> list[str]:
    """Return the splits of n clips.

    Args:
        values: (n,) or (n, 1) words or numbers.
        place: source of the values, for messages.
        numbers: number as text -> split, for a column of numbers.

    Raises:
        InputError: no clips, `values` of another shape, or a word or number that is not the name of a split.
    """
    if not values.size or values.size != len(values):
        raise InputError(
            f"{place} has shape {values.shape}; store the name of a split for each clip, in shape (clips,)"
        )
    names = {**dict(zip(SPLITS, SPLITS, strict=True)), **ALIASES, **(numbers or {})}
    splits = []
    for row, word in enumerate(map(text, values.ravel().tolist())):
        split = names.get(word.lower().removesuffix(".0"))
        if split is None:
            raise InputError(f"{place}: '{word}' in row {row} is not a split; choose from {', '.join(names)}")
        splits.append(split)
    return splits


def read_class_names(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Read the names of classes, one per line, in the order of the label values.

    Raises:
        InputError: the file cannot be read as UTF-8 text, contains no names, or repeats a name.
    """
    names = tuple(line.strip() for line in read_lines(path, "a list of class names") if line.strip())
    if not names:
        raise InputError(f"{path} contains no class names; write one name per line")
    check_unique(names, f"{path}: the list of class names")
    return names


def _from_one_hot(rows: NDArray[Any], place: str) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    other = rows[~np.isin(rows, (0, 1))] if rows.dtype.kind in "fiub" else rows.ravel()[:1]
    if len(other):
        raise InputError(
            f"{place} of shape {rows.shape} contain {text(other[0])[:80]!r}, which is neither 0 nor 1; pass one-hot "
            "rows of zeros and ones"
        )
    wrong = np.flatnonzero(rows.sum(axis=1) != 1)
    if len(wrong):
        raise InputError(
            f"{place}: row {wrong[0]} has {int(rows[wrong[0]].sum())} classes; mark exactly one class per clip"
        )
    columns, codes = np.unique(rows.argmax(axis=1), return_inverse=True)
    return codes.astype(np.int64), tuple(str(column) for column in columns.tolist())


def _is_number(word: str) -> bool:
    return re.fullmatch(r"-?[0-9]{1,18}", word) is not None


def _check_named(labels: Sequence[str], names: Sequence[str], place: str) -> None:
    """Raise InputError if `names` lacks one of the labels, which are text."""
    if other := sorted(set(labels) - set(names)):
        raise InputError(
            f"{place}: the labels are text, but the list of class names lacks the label '{other[0]:.80}'; leave out "
            "--class-names, because labels that are text cannot be renamed"
        )


def _renamed(values: tuple[str, ...], names: Sequence[str], place: str) -> tuple[str, ...]:
    if len(names) == len(values):
        return tuple(names)
    numbers = [int(value) for value in values if value.isdecimal()]
    if numbers and len(numbers) == len(values) and max(numbers) < len(names):  # some of the named classes have no clip
        return tuple(names[number] for number in numbers)
    raise InputError(
        f"{place}: there are {len(names)} class names for {len(values)} classes (values {', '.join(values):.80}); "
        "pass one name per class"
    )


def _row_names(splits: Sequence[str]) -> tuple[str, ...]:
    counts = {split: count() for split in dict.fromkeys(splits)}
    return tuple(f"{split}-{next(counts[split]):05d}" for split in splits)
