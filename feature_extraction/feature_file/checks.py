"""Consistency checks of the content of a feature file: counts, shapes, types, unique names."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from aadml.feature_extraction.feature_file.content import UNLABELLED, FeatureFile, Texts
from aadml.feature_extraction.feature_file.names import MODALITIES, check_modality
from aadml.feature_extraction.feature_file.rows import FeatureRows, ModalityRows
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.manifest import SPLITS

_SURROGATE = re.compile("[\ud800-\udfff]")


def check(content: FeatureFile, place: str) -> None:
    """Check all content of a feature file.

    Args:
        content: content to write, or content that was read.
        place: subject of the error message, usually a path.

    Raises:
        InputError: the content is inconsistent or invalid, such as a wrong number of rows, a NaN, an unknown split or
            an id that occurs twice.
    """
    for rows in checked(content, content.rows_by_modality(), place).values():
        for each in (rows.pooled, rows.sequence, rows.times):
            for _ in each.blocks() if each is not None else ():
                pass


def checked(content: FeatureFile, rows: Mapping[str, ModalityRows], place: str) -> dict[str, ModalityRows]:
    """Check the content of a feature file; the values of its modalities are checked later, during reading.

    Args:
        content: content to write, or content that was read; its own features and sequences are not checked.
        rows: features and sequences by modality.
        place: subject of the error message, usually a path.

    Returns:
        `rows`, with a check of the values of each block when the block is read.

    Raises:
        InputError: see `check`.
    """
    n = len(content.ids)
    if not rows:
        raise InputError(f"{place} contains no modality; add features of {', '.join(MODALITIES)} or another modality")
    if n == 0 and content.shard is None:
        raise InputError(f"{place} contains no clips; add at least one clip")
    for name, modality in rows.items():
        check_modality(name, place)
        _require(f"{place}: /{name}", modality.pooled, np.float32, n, "d")
    _check_clips(content, n, place)
    if content.texts is not None:
        check_texts(content.texts, n, place)
        first, _ = content.texts.first_of_each(n)
        if "text" not in rows or not np.array_equal(rows["text"].pooled.array(), first):
            problem = "the text features differ from" if "text" in rows else "there are no text features of"
            raise InputError(
                f"{place}: {problem} the first text of each clip in /text_row; write the first text "
                "of each clip as its text features"
            )
    _check_present(content, rows, place)
    alone = sorted(set(content.sequences) - set(rows))
    if alone:
        raise InputError(f"{place}: /{alone[0]}_sequence is present without pooled features; add /{alone[0]}")
    return {name: _watched(rows[name], content.present.get(name), n, f"{place}: /{name}") for name in rows}


def _require(place: str, values: FeatureRows | NDArray[Any], dtype: DTypeLike, *shape: int | str) -> None:
    """Raise InputError unless an array has this type and shape.

    In `shape`, "d" is any length above 0, and another name is any length.
    """
    fits = values.dtype == dtype and len(values.shape) == len(shape)
    fits = fits and all(
        length == wanted if isinstance(wanted, int) else length or wanted != "d"
        for length, wanted in zip(values.shape, shape, strict=True)
    )
    if not fits:
        needed = f"{np.dtype(dtype)} ({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"
        raise InputError(f"{place} is {values.dtype} {tuple(values.shape)}, but must be {needed}; write such an array")


def _check_clips(content: FeatureFile, n: int, place: str) -> None:
    """Check ids, labels, class names, splits, columns, fingerprints and shard rows of n clips."""
    lists = {"/split": content.splits} | {f"/column/{name}": column for name, column in content.columns.items()}
    for key, values in lists.items():
        if len(values) != n:
            raise InputError(f"{place}: {key} has {len(values)} rows, but there are {n} ids; write one row per id")
    for key, values in (lists | {"/id": content.ids, "/class_names": content.class_names}).items():
        if wrong := next(filter(_SURROGATE.search, values), ""):
            raise InputError(f"{place}: {key} contains {wrong!r}, which is not valid Unicode; correct this text")
    if content.shard is not None:
        _require(f"{place}: /shard_rows", content.shard.rows, np.int64, n)
    for name, fingerprints in content.fingerprints.items():
        _require(f"{place}: /fingerprint/{name}", fingerprints, np.uint8, n, "width")
    _check_labels(content, n, place)
    check_unique(content.ids, f"{place}: /id")
    check_unique(content.class_names, f"{place}: /class_names")
    unknown = [split for split in content.splits if split not in SPLITS]
    if unknown:
        raise InputError(f"{place}: /split contains '{unknown[0]}'; choose from {', '.join(SPLITS)}")


def _check_present(content: FeatureFile, rows: Mapping[str, ModalityRows], place: str) -> None:
    n = len(content.ids)
    for name, present in content.present.items():
        where = f"{place}: /{name}_present"
        if name not in rows:
            raise InputError(f"{where} is present without its features; add /{name}")
        _require(where, present, np.bool_, n)
        offsets = rows[name].offsets
        filled = np.diff(offsets) != 0 if offsets is not None and offsets.shape == (n + 1,) else np.zeros(n, bool)
        if (filled & ~present).any():
            clip = content.ids[np.argmax(filled & ~present)]
            raise InputError(
                f"{where} is false for clip {clip!r}, which has rows in /{name}_sequence; write true, or remove "
                "the rows"
            )
    empty = np.flatnonzero(~np.any([content.has(name) for name in rows], axis=0))
    if len(empty):
        raise InputError(f"{place}: clip {content.ids[empty[0]]!r} has no modality; leave out clips without modalities")


def check_texts(texts: Texts, n: int, place: str) -> None:
    """Check texts of n clips; `place` is the subject of the error message.

    Raises:
        InputError: wrong shapes or types, a NaN or infinite value, a clip outside of the n clips, or texts out of
            order.
    """
    _require(f"{place}: /text", texts.values, np.float32, "texts", "d")
    if not np.isfinite(texts.values).all():
        raise InputError(f"{place}: /text contains NaN or infinity; write finite values")
    rows = texts.rows
    _require(f"{place}: /text_row", rows, np.int64, len(texts.values))
    if len(rows) and (rows[0] < 0 or rows[-1] >= n or (np.diff(rows) < 0).any()):
        raise InputError(
            f"{place}: /text_row contains {rows.min()} to {rows.max()}, but must contain clips from 0 to {n - 1} in "
            "ascending order; write the clip of each text, and sort the texts by clip"
        )


def check_unique(names: Sequence[str], place: str) -> None:
    """Raise InputError, with the subject `place`, if a name occurs more than once."""
    if len(set(names)) < len(names):
        name, count = Counter(names).most_common(1)[0]
        raise InputError(f"{place} contains {name!r} {count} times; write each name once")


def _check_labels(content: FeatureFile, n: int, place: str) -> None:
    labels, marked, classes = content.labels, content.all_labels, len(content.class_names)
    _require(f"{place}: /label", labels, np.int64, n)
    wrong = np.flatnonzero((labels < UNLABELLED) | (labels >= classes))
    if len(wrong):
        valid = f"0 to {classes - 1}, or " if classes else ""
        raise InputError(
            f"{place}: /label is {labels[wrong[0]]} in row {wrong[0]}, but there are {classes} class names"
            f"; write {valid}{UNLABELLED} for a clip without a label"
        )
    if marked is None:
        return
    _require(f"{place}: /labels", marked, np.uint8, n, classes)
    if (marked > 1).any():
        raise InputError(f"{place}: /labels contains {marked.max()}; use only zeros and ones")
    agrees = agreeing(labels, marked)
    if not agrees.all():
        raise InputError(
            f"{place}: /labels and /label contradict each other in row {np.argmin(agrees)}; "
            "write in /label the first class of /labels, or -1 for a clip without a class"
        )


def agreeing(labels: NDArray[np.int64], marked: NDArray[Any]) -> NDArray[Any]:
    """Return (n,) nonzero for clips whose first class `labels` (n,) is among all classes, the marks (n, C).

    A clip without a class agrees if its row has no mark.
    """
    return np.where(labels == UNLABELLED, marked.sum(axis=1) == 0, marked[np.arange(len(labels)), labels])


def _watched(rows: ModalityRows, present: NDArray[np.bool_] | None, n: int, place: str) -> ModalityRows:
    """Check the shapes of a sequence of n clips, and return rows with a check of their values during reading."""
    values, offsets, times = rows.sequence, rows.offsets, rows.times
    pooled = replace(rows.pooled, blocks=partial(_finite, rows.pooled, place, present))
    if values is None or offsets is None:
        return ModalityRows(pooled)
    _require(f"{place}_sequence", values, np.float32, "total", "width")
    _require(f"{place}_offsets", offsets, np.int64, n + 1)
    if offsets[0] != 0 or offsets[-1] != values.shape[0] or (np.diff(offsets) < 0).any():
        raise InputError(
            f"{place}_offsets go from {offsets[0]} to {offsets[-1]}, but must ascend from 0 to {values.shape[0]}; "
            "write such offsets"
        )
    if times is not None:
        _require(f"{place}_times", times, np.float64, int(offsets[-1]))
        times = replace(times, blocks=partial(_ascending, times, offsets, f"{place}_times"))
    values = replace(values, blocks=partial(_finite, values, f"{place}_sequence"))
    return ModalityRows(pooled, values, offsets, times)


def _finite(rows: FeatureRows, place: str, present: NDArray[np.bool_] | None = None) -> Iterator[NDArray[np.float32]]:
    start = 0
    for block in rows.blocks():
        finite = np.isfinite(block)
        if not finite.all():
            row = start + int(np.argmin(finite.all(axis=1)))
            raise InputError(f"{place}: row {row} contains NaN or infinity; write finite values")
        absent = block.any(axis=1) & ~present[start : start + len(block)] if present is not None else np.zeros(0, bool)
        if absent.any():
            row = start + int(absent.argmax())
            raise InputError(
                f"{place}: row {row} is not zero, but the mask of this modality is false in this row; write zeros, or "
                "true in the mask"
            )
        yield block
        start += len(block)


def _ascending(times: FeatureRows, offsets: NDArray[np.int64], place: str) -> Iterator[NDArray[np.float64]]:
    start, last = 0, 0.0
    for block in times.blocks():
        if not np.isfinite(block).all() or (block < 0).any():
            raise InputError(f"{place} contains NaN, infinity or negative numbers; write finite times of at least 0")
        back = np.diff(block, prepend=last) < 0
        first, stop = np.searchsorted(offsets, [start, start + len(block)])
        back[offsets[first:stop] - start] = False  # the first row of each clip
        if back.any():
            raise InputError(
                f"{place} decreases at row {start + int(np.argmax(back))}, within one clip; "
                "sort the rows of each clip by time"
            )
        yield block
        start, last = start + len(block), block[-1] if len(block) else last
