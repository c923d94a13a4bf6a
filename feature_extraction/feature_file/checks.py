"""What a feature file must hold to be believed: counts, shapes, types, names that name one thing."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from feature_extraction.feature_file.content import MODALITIES, UNLABELLED, FeatureFile, Timeline
from feature_extraction.ground.errors import InputError
from feature_extraction.manifest import SPLITS

_BLOCK = 8192  # rows looked at once while checking for NaN


def check(content: FeatureFile, place: str) -> None:
    """Refuse content that contradicts itself.

    Args:
        content: what is to be written or was read.
        place: what the message shall name, usually a path.

    Raises:
        InputError: counts, shapes, types, NaN or infinity, labels out of range, unknown splits, a name given twice.
    """
    n = len(content.ids)
    if not content.features:
        raise InputError(f"{place}: holds no modality; one of {', '.join(MODALITIES)} is needed")
    if n == 0 and content.shard is None:
        raise InputError(f"{place}: holds no clips")
    for name, values in content.features.items():
        if name not in MODALITIES:
            raise InputError(f"{place}: '{name}' is not a modality; possible are {', '.join(MODALITIES)}")
        _check_matrix(values, n, f"{place}: /{name}")
    for name, count in [("label", len(content.labels)), ("split", len(content.splits))]:
        _check_count(count, n, f"{place}: /{name}")
    for name, values_of_column in content.columns.items():
        _check_count(len(values_of_column), n, f"{place}: /column/{name}")
    if content.shard is not None:
        _check_count(len(content.shard.rows), n, f"{place}: /shard_rows")
    _check_labels(content, place)
    _check_unique(content.ids, f"{place}: /id")
    _check_unique(content.class_names, f"{place}: /class_names")
    unknown = Counter(split for split in content.splits if split not in SPLITS)
    if unknown:
        raise InputError(f"{place}: /split holds '{next(iter(unknown))}'; possible are {', '.join(SPLITS)}")
    for name, sequence in content.sequences.items():
        _check_sequence(sequence, n, content.features.get(name), f"{place}: /{name}_sequence")


def _check_count(count: int, n: int, place: str) -> None:
    if count != n:
        raise InputError(f"{place} has {count} rows, but there are {n} ids")


def _check_unique(names: Sequence[str], place: str) -> None:
    if len(set(names)) < len(names):
        name, count = Counter(names).most_common(1)[0]
        raise InputError(f"{place} holds {name!r} {count} times; each name must stand for one thing")


def _check_matrix(values: NDArray[np.float32], n: int, place: str) -> None:
    if values.ndim != 2 or values.shape[1] == 0:
        raise InputError(f"{place} has shape {values.shape}; (clips, dimensions) is needed")
    if values.dtype != np.float32:
        raise InputError(f"{place} holds {values.dtype}; float32 is needed")
    _check_count(len(values), n, place)
    _check_finite(values, place)


def _check_finite(values: NDArray[np.float32], place: str) -> None:
    for start in range(0, len(values), _BLOCK):
        finite = np.isfinite(values[start : start + _BLOCK]).all(axis=1)
        if not finite.all():
            raise InputError(f"{place}: row {start + int(np.argmin(finite))} holds NaN or infinity")


def _check_labels(content: FeatureFile, place: str) -> None:
    if content.labels.dtype != np.int64 or content.labels.ndim != 1:
        raise InputError(f"{place}: /label is {content.labels.dtype} {content.labels.shape}; int64 (clips,) is needed")
    classes = len(content.class_names)
    if not classes and (content.labels == UNLABELLED).all():
        return
    wrong = np.flatnonzero((content.labels < 0) | (content.labels >= classes))
    if len(wrong):
        raise InputError(
            f"{place}: /label is {content.labels[wrong[0]]} in row {wrong[0]}, but there are {classes} class names"
        )
    if content.all_labels is not None:
        _check_all_labels(content.all_labels, content, f"{place}: /labels")


def _check_all_labels(marked: NDArray[np.uint8], content: FeatureFile, place: str) -> None:
    shape = (len(content.ids), len(content.class_names))
    if marked.shape != shape or marked.dtype != np.uint8 or (marked > 1).any():
        raise InputError(f"{place} is {marked.dtype} {marked.shape}; zeros and ones, uint8 {shape}, are needed")
    without = np.flatnonzero(marked[np.arange(len(marked)), content.labels] == 0)
    if len(without):
        raise InputError(f"{place}: row {without[0]} lacks the class that /label names")


def _check_sequence(sequence: Timeline, n: int, pooled: NDArray[np.float32] | None, place: str) -> None:
    offsets, values = sequence.offsets, sequence.values
    if pooled is None:
        raise InputError(f"{place} has no pooled features beside it")
    if values.ndim != 2 or values.dtype != np.float32:
        raise InputError(f"{place} is {values.dtype} {values.shape}; float32 (total, dimensions) is needed")
    if offsets.dtype != np.int64 or offsets.shape != (n + 1,):
        raise InputError(f"{place}: its offsets are {offsets.dtype} {offsets.shape}; int64 ({n + 1},) is needed")
    if offsets[0] != 0 or offsets[-1] != len(values) or (np.diff(offsets) < 0).any():
        raise InputError(f"{place}: its offsets do not run from 0 to {len(values)} without a step back")
    _check_finite(values, place)
    if sequence.times is not None:
        _check_times(sequence.times, offsets, place)


def _check_times(times: NDArray[np.float64], offsets: NDArray[np.int64], place: str) -> None:
    if times.dtype != np.float64 or times.shape != (int(offsets[-1]),):
        raise InputError(f"{place}: its times are {times.dtype} {times.shape}; float64 ({offsets[-1]},) is needed")
    if not np.isfinite(times).all() or (times < 0).any():
        raise InputError(f"{place}: its times hold NaN, infinity or numbers below zero")
    back = np.diff(times) < 0
    starts = offsets[1:-1]
    back[starts[(starts > 0) & (starts < len(times))] - 1] = False  # a new clip begins anew
    if back.any():
        raise InputError(f"{place}: its times go back at row {int(np.argmax(back)) + 1}, within one clip")
