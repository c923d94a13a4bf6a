"""Fit of a transformation, such as a whitening, to the training clips of a job."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.backbones import Description, Fit, mean_over_time
from aadml.feature_extraction.feature_file.rows import Cursor, FeatureRows, ModalityRows, gathered, spread


def fitted(
    rows: ModalityRows,
    fit: Fit,
    splits: Sequence[str],
    present: NDArray[np.bool_],
    *,
    sequence: bool,
    pool: Callable[[Description], NDArray[np.float32]] = mean_over_time,
) -> tuple[ModalityRows, dict[str, NDArray[np.float32]]]:
    """Fit a transformation to the features of the training clips and apply it to all clips.

    Args:
        rows: rows of one modality with a sequence, which is read at least twice.
        fit: kind of transformation.
        splits: split of each of the n clips.
        present: (n,) mask of the clips that have the modality.
        sequence: whether the result includes the transformed sequence.
        pool: pooling of the transformed features over time.

    Returns:
        The transformed rows, computed during reading, and the fitted arrays.

    Raises:
        InputError: the transformation cannot be fitted, for example because there are too few training clips.
    """
    assert rows.sequence is not None
    assert rows.offsets is not None
    read = partial(_clips, rows.sequence, np.diff(rows.offsets)[present])
    described = zip(read(), compress(splits, present), strict=True)
    arrays = fit.arrays(values for values, split in described if split == "train")
    transform = fit.transformation(arrays)
    width = transform(np.zeros((1, rows.sequence.shape[1]), np.float32)).shape[1]

    def transformed() -> Iterator[Description]:
        return map(transform, read())

    def pooled() -> Iterator[NDArray[np.float32]]:
        return gathered(spread(map(pool, transformed()), present, width))

    features = FeatureRows((len(splits), width), np.dtype(np.float32), pooled)
    if not sequence:
        return ModalityRows(features), arrays
    shape = (rows.sequence.shape[0], width)
    timeline = FeatureRows(shape, np.dtype(np.float32), lambda: gathered(transformed()))
    return ModalityRows(features, timeline, rows.offsets, rows.times), arrays


def _clips(sequence: FeatureRows, lengths: NDArray[np.int64]) -> Iterator[Description]:
    cursor = Cursor(sequence)
    return (cursor.take(int(length)) for length in lengths)
