"""Notes on clips and recordings in several splits. Such clips and recordings raise the scores of test clips."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from aadml.comparison.clips import Clips, Splits
from aadml.comparison.stored_rows import StoredRows
from aadml.data.inspection.column_statistics import row_hashes
from aadml.data.inspection.duplicates import find_duplicates
from aadml.data.splitting.division import recordings
from aadml.data.splitting.folds import first_five
from aadml.feature_extraction.feature_file.content import FeatureFile
from aadml.feature_extraction.manifest import RECORDING

_Rows: TypeAlias = list[tuple[NDArray[Any], NDArray[np.int64]]]
"""Array (m, d) of each modality, and the row (n,) of each clip."""

_COLUMNS = 8
"""Number of columns of a modality that are compared first, since few unequal rows are equal in these columns."""


def copy_notes(splits: Splits) -> list[str]:
    """Return a note on the test clips that equal a train or valid clip in the features of all modalities.

    Without such clips, the list is empty. No clips are compared if the features of a modality are absent, or are
    computed or transformed batch by batch.
    """
    modalities = tuple(splits.test.features)
    parts = [_rows_of(part, modalities) for part in (splits.test, splits.train, splits.valid) if len(part)]
    if len(parts) < 2 or not len(splits.test) or not all(parts):
        return []
    test, *others = parts
    keys = [_keys(part) for part in parts]
    suspects = np.flatnonzero(np.isin(keys[0], np.concatenate(keys[1:])))
    known = {
        hashes
        for part, numbers in zip(others, keys[1:], strict=True)
        for hashes in _hashes(part, np.flatnonzero(np.isin(numbers, keys[0][suspects])))
    }
    names = [splits.test.ids[n] for n, row in zip(suspects, _hashes(test, suspects), strict=True) if row in known]
    if not names:
        return []
    return [
        f"{len(names)} test clips have the same features as train or valid clips ({first_five(names)}), so scores are "
        "too high; `aadml convert IN OUT --drop-duplicates train` removes the other copies"
    ]


def with_copy_notes(splits: Splits) -> Splits:
    """Return the splits with the notes of `copy_notes`, each note once."""
    return replace(splits, notes=tuple(dict.fromkeys((*splits.notes, *copy_notes(splits)))))


def recording_notes(content: FeatureFile) -> Iterator[str]:
    """Yield a note for each pair of splits with clips of the same recordings."""
    names = recordings(content) if RECORDING in content.columns else ()
    for pair, count in find_duplicates(names, content.splits, names).across.items() if names else ():
        first, second = (set(np.asarray(names)[content.rows(split)]) for split in pair.split("-"))
        if count:
            yield f"{count} recordings have clips in both splits of {pair} ({first_five(sorted(first & second))})"


def _rows_of(clips: Clips, modalities: Sequence[str]) -> _Rows:
    """Return the array and the rows of each modality (see `_Rows`).

    The list is empty if the features of a modality are absent, or are computed or transformed batch by batch.
    """
    rows = []
    for features in (clips.features.get(modality) for modality in modalities):
        if isinstance(features, StoredRows) and features.change is None:
            rows.append((features.array, features.index))
        elif isinstance(features, Tensor):
            rows.append((features.float().cpu().numpy(), np.arange(len(clips))))
    return rows if len(rows) == len(modalities) else []


def _keys(rows: _Rows) -> NDArray[np.uint64]:
    """Return the keys (n,) of the clips, computed from some columns; clips with equal features have equal keys."""
    weights = iter(np.random.default_rng(0).integers(1, 2**63, size=_COLUMNS * len(rows), dtype=np.uint64))
    keys = np.zeros(len(rows[0][1]), dtype=np.uint64)
    for array, index in rows:
        for column in np.linspace(0, array.shape[1] - 1, _COLUMNS).astype(np.int64):
            values = array[:, column][index].astype(np.float32) + np.float32(0)
            keys += next(weights) * values.view(np.uint32).astype(np.uint64)
    return keys


def _hashes(rows: _Rows, chosen: NDArray[np.int64]) -> list[tuple[bytes, ...]]:
    """Return the hashes of the features of the clips `chosen` (m,), one hash per modality."""
    return list(zip(*(row_hashes(array[index[chosen]].astype(np.float32)) for array, index in rows), strict=True))
