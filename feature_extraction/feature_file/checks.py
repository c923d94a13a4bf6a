"""What a feature file must hold to be believed: counts, shapes, types, names that name one thing."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.feature_file.content import UNLABELLED, FeatureFile, Texts
from aadml.feature_extraction.feature_file.names import MODALITIES, check_modality
from aadml.feature_extraction.feature_file.rows import FeatureRows, ModalityRows
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.manifest import SPLITS


def check(content: FeatureFile, place: str) -> None:
    """Refuse content that contradicts itself.

    Args:
        content: what is to be written or was read.
        place: what the message shall name, usually a path.

    Raises:
        InputError: counts, shapes, types, NaN or infinity, labels out of range, unknown splits, a name given twice.
    """
    for rows in checked(content, content.rows_by_modality(), place).values():
        for each in (rows.pooled, rows.sequence, rows.times):
            for _ in each.blocks() if each is not None else ():
                pass


def checked(content: FeatureFile, rows: Mapping[str, ModalityRows], place: str) -> dict[str, ModalityRows]:
    """Refuse content that contradicts itself, as far as that is seen without its numbers.

    Args:
        content: what is to be written or was read; its own numbers are not looked at.
        rows: the numbers of each modality.
        place: what the message shall name, usually a path.

    Returns:
        The numbers, which are checked block by block when they are taken.

    Raises:
        InputError: see `check`.
    """
    n = len(content.ids)
    if not rows:
        raise InputError(f"{place}: holds no modality; {', '.join(MODALITIES)} or another is needed")
    if n == 0 and content.shard is None:
        raise InputError(f"{place}: holds no clips")
    for name, found in rows.items():
        check_modality(name, place)
        _check_matrix(found.pooled, n, f"{place}: /{name}")
    _check_head(content, n, place)
    if content.texts is not None:
        check_texts(content.texts, n, place)
        _check_first_texts(content.texts, rows, n, place)
    _check_present(content, rows, place)
    alone = sorted(set(content.sequences) - set(rows))
    if alone:
        raise InputError(f"{place}: /{alone[0]}_sequence has no pooled features beside it")
    for name, found in rows.items():
        _check_sequence(found, n, f"{place}: /{name}_sequence")
    return {name: _watched(found, content.present.get(name), f"{place}: /{name}") for name, found in rows.items()}


def _check_head(content: FeatureFile, n: int, place: str) -> None:
    for name, count in [("label", len(content.labels)), ("split", len(content.splits))]:
        _check_count(count, n, f"{place}: /{name}")
    for name, values_of_column in content.columns.items():
        _check_count(len(values_of_column), n, f"{place}: /column/{name}")
    if content.shard is not None:
        _check_count(len(content.shard.rows), n, f"{place}: /shard_rows")
    for name, prints in content.fingerprints.items():
        if prints.dtype != np.uint8 or prints.ndim != 2:
            raise InputError(f"{place}: /fingerprint/{name} is {prints.dtype} {prints.shape}; uint8 (n, d) is needed")
        _check_count(len(prints), n, f"{place}: /fingerprint/{name}")
    _check_labels(content, place)
    _check_unique(content.ids, f"{place}: /id")
    _check_unique(content.class_names, f"{place}: /class_names")
    unknown = Counter(split for split in content.splits if split not in SPLITS)
    if unknown:
        raise InputError(f"{place}: /split holds '{next(iter(unknown))}'; possible are {', '.join(SPLITS)}")


def _check_present(content: FeatureFile, rows: Mapping[str, ModalityRows], place: str) -> None:
    n = len(content.ids)
    for name, there in content.present.items():
        where = f"{place}: /{name}_present"
        if name not in rows:
            raise InputError(f"{where} has no features beside it")
        if there.dtype != np.bool_ or there.shape != (n,):
            raise InputError(f"{where} is {there.dtype} {there.shape}; bool ({n},) is needed")
        offsets = rows[name].offsets
        if offsets is not None and offsets.shape == (n + 1,) and np.diff(offsets)[~there].any():
            raise InputError(f"{where} says that clips lack what /{name}_sequence has rows of")
    nothing = np.flatnonzero(~np.any([content.has(name) for name in rows], axis=0))
    if len(nothing):
        raise InputError(f"{place}: clip {content.ids[nothing[0]]!r} has no modality at all; leave such clips out")


def check_texts(texts: Texts, n: int, place: str) -> None:
    """Refuse texts that are not of the n clips.

    Raises:
        InputError: shapes, types, NaN or infinity, a clip that is not there, or texts out of order.
    """
    values, rows = texts.values, texts.rows
    if values.ndim != 2 or not values.shape[1] or values.dtype != np.float32 or not np.isfinite(values).all():
        raise InputError(f"{place}: /text is {values.dtype} {values.shape}; finite float32 (texts, d) is needed")
    if rows.dtype != np.int64 or rows.shape != values.shape[:1]:
        raise InputError(f"{place}: /text_row is {rows.dtype} {rows.shape}; int64 ({len(values)},) is needed")
    if len(rows) and (rows[0] < 0 or rows[-1] >= n or (np.diff(rows) < 0).any()):
        raise InputError(f"{place}: /text_row must name clips 0 to {n - 1} in order, without a step back")


def _check_first_texts(texts: Texts, rows: Mapping[str, ModalityRows], n: int, place: str) -> None:
    if "text" not in rows or not np.array_equal(rows["text"].pooled.array(), texts.first_of_each(n)[0]):
        raise InputError(f"{place}: the text features are not the first text of each clip; /text_row holds others")


def _check_count(count: int, n: int, place: str) -> None:
    if count != n:
        raise InputError(f"{place} has {count} rows, but there are {n} ids")


def _check_unique(names: Sequence[str], place: str) -> None:
    if len(set(names)) < len(names):
        name, count = Counter(names).most_common(1)[0]
        raise InputError(f"{place} holds {name!r} {count} times; each name must stand for one thing")


def _check_matrix(values: FeatureRows, n: int, place: str) -> None:
    if len(values.shape) != 2 or values.shape[1] == 0:
        raise InputError(f"{place} has shape {values.shape}; (clips, dimensions) is needed")
    if values.dtype != np.float32:
        raise InputError(f"{place} holds {values.dtype}; float32 is needed")
    _check_count(values.shape[0], n, place)


def _check_labels(content: FeatureFile, place: str) -> None:
    if content.labels.dtype != np.int64 or content.labels.ndim != 1:
        raise InputError(f"{place}: /label is {content.labels.dtype} {content.labels.shape}; int64 (clips,) is needed")
    classes = len(content.class_names)
    wrong = np.flatnonzero((content.labels < UNLABELLED) | (content.labels >= classes))
    if len(wrong):
        raise InputError(
            f"{place}: /label is {content.labels[wrong[0]]} in row {wrong[0]}, but there are {classes} class names "
            f"({UNLABELLED} is a clip without a label)"
        )
    if content.all_labels is not None:
        _check_all_labels(content.all_labels, content, f"{place}: /labels")


def _check_all_labels(marked: NDArray[np.uint8], content: FeatureFile, place: str) -> None:
    shape = (len(content.ids), len(content.class_names))
    if marked.shape != shape or marked.dtype != np.uint8 or (marked > 1).any():
        raise InputError(f"{place} is {marked.dtype} {marked.shape}; zeros and ones, uint8 {shape}, are needed")
    own = np.where(content.labels == UNLABELLED, marked.sum(axis=1) == 0, marked[np.arange(shape[0]), content.labels])
    without = np.flatnonzero(own == 0)
    if len(without):
        raise InputError(f"{place}: row {without[0]} lacks the class that /label names, or has one where there is none")


def _check_sequence(rows: ModalityRows, n: int, place: str) -> None:
    values, offsets, times = rows.sequence, rows.offsets, rows.times
    if values is None or offsets is None:
        return
    if len(values.shape) != 2 or values.dtype != np.float32:
        raise InputError(f"{place} is {values.dtype} {values.shape}; float32 (total, dimensions) is needed")
    if offsets.dtype != np.int64 or offsets.shape != (n + 1,):
        raise InputError(f"{place}: its offsets are {offsets.dtype} {offsets.shape}; int64 ({n + 1},) is needed")
    if offsets[0] != 0 or offsets[-1] != values.shape[0] or (np.diff(offsets) < 0).any():
        raise InputError(f"{place}: its offsets do not run from 0 to {values.shape[0]} without a step back")
    if times is not None and (times.dtype != np.float64 or times.shape != (int(offsets[-1]),)):
        raise InputError(f"{place}: its times are {times.dtype} {times.shape}; float64 ({offsets[-1]},) is needed")


def _watched(rows: ModalityRows, there: NDArray[np.bool_] | None, place: str) -> ModalityRows:
    """Have numbers checked as they are taken."""
    sequence, times, offsets = rows.sequence, rows.times, rows.offsets
    if sequence is not None:
        sequence = replace(sequence, blocks=partial(_finite, sequence, f"{place}_sequence"))
    if times is not None and offsets is not None:
        times = replace(times, blocks=partial(_in_order, times, offsets, f"{place}_sequence"))
    pooled = replace(rows.pooled, blocks=partial(_finite, rows.pooled, place, there))
    return ModalityRows(pooled, sequence, offsets, times)


def _finite(rows: FeatureRows, place: str, there: NDArray[np.bool_] | None = None) -> Iterator[NDArray[np.float32]]:
    start = 0
    for block in rows.blocks():
        finite = np.isfinite(block).all(axis=1)
        if not finite.all():
            raise InputError(f"{place}: row {start + int(np.argmin(finite))} holds NaN or infinity")
        if there is not None and block[~there[start : start + len(block)]].any():
            raise InputError(f"{place}: holds numbers of a clip that {place}_present says lacks it; zeros are needed")
        yield block
        start += len(block)


def _in_order(times: FeatureRows, offsets: NDArray[np.int64], place: str) -> Iterator[NDArray[np.float64]]:
    start, last = 0, 0.0
    for block in times.blocks():
        if not np.isfinite(block).all() or (block < 0).any():
            raise InputError(f"{place}: its times hold NaN, infinity or numbers below zero")
        back = np.diff(block, prepend=last) < 0
        first, stop = np.searchsorted(offsets, [start, start + len(block)])
        back[offsets[first:stop] - start] = False  # a new clip begins anew
        if back.any():
            raise InputError(f"{place}: its times go back at row {start + int(np.argmax(back))}, within one clip")
        yield block
        start, last = start + len(block), block[-1] if len(block) else last
