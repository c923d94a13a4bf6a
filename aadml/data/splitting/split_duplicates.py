"""Near-duplicates across splits: noisy, re-encoded, mirrored and shifted copies."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from aadml.comparison.stored_rows import BLOCK, StoredRows
from aadml.data.splitting.division import DEFAULT_RULE
from aadml.data.splitting.fingerprint_views import mirrored, without_end, without_start
from aadml.data.splitting.near_duplicates import SHARE, near_duplicates, usual_distance
from aadml.feature_extraction.feature_file.content import FeatureFile
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.manifest import SPLITS
from aadml.feature_extraction.media.fingerprints import SIZE

FINGERPRINT_SHARES = {"audio": 0.2, "visual": 0.12}
"""Two fingerprints count as equal below these shares of the usual distance, or below `BOTH_SHARE` if both modalities
are compared together. Distances in a hard case of similar clips, 2,000 spoken and handwritten digits (audio, visual,
both): nearest unrelated clips 0.38, 0.13, 0.53; re-encoded clips 0.5, 0.07, 0.25; clips with 10 dB noise 0.7, 0.25,
0.34."""

BOTH_SHARE = 0.4
SHIFTS = (1, 2, 3)
"""Shifts between two copies, in sixteenths of the clip, at which both fingerprints are compared together. Nearest
unrelated clips at these shifts: 0.58 (the digits), 0.66 (sample clips). Median of sample clips of 2 s that are cut by
0.3 s: 0.28."""
_BOTH = "both fingerprints"
_MIRRORED, _SHIFTED = ", mirrored", ", shifted"
_LATER = {"train": ("test", "valid"), "valid": ("test",)}
"""Split -> the later splits whose clips are looked up in this split."""
_LARGEST = 1e12  # multiplications of numbers, which take minutes
SAMPLE_SEED = 0
"""Seed of the sample of clips to look up if looking up all clips would take too long."""


@dataclass(frozen=True)
class DuplicatePair:
    """Clip that repeats a clip of an earlier split, exactly or nearly.

    Args:
        id: id of the clip in the later split.
        split: the later split.
        other: id of the clip in the earlier split.
        other_split: the earlier split.
        distances: kind of similarity (features of a modality, its fingerprint, both fingerprints) -> distance, as a
            share of the usual distance between nearest neighbors in the larger of train and the earlier split.
    """

    id: str
    split: str
    other: str
    other_split: str
    distances: Mapping[str, float]


def searched(content: FeatureFile, *, limit: bool) -> dict[str, NDArray[np.int64]]:
    """For each of the splits "test" and "valid", return the row numbers (m,) to look up in earlier splits.

    Args:
        content: the data.
        limit: whether to return a random sample (seed `SAMPLE_SEED`) if looking up all clips would take many
            minutes.
    """
    dimensions = sum(values.shape[1] for values in _compared_features(content).values())
    dimensions += sum(prints.shape[1] for prints in content.fingerprints.values()) * (3 + 2 * len(SHIFTS))
    counts = Counter(content.splits)
    products = sum(counts[split] * counts[known] for known, later in _LATER.items() for split in later) * dimensions
    chosen = {split: content.rows(split) for split in ("test", "valid")}
    for split, rows in chosen.items():
        if limit and products > _LARGEST and len(rows):
            count = max(1, int(len(rows) * _LARGEST / products))
            chosen[split] = np.sort(np.random.default_rng(SAMPLE_SEED).choice(rows, count, replace=False))
    return chosen


def duplicate_pairs(content: FeatureFile, *, limit: bool = False) -> list[DuplicatePair]:
    """Return each test or valid clip that repeats a clip of an earlier split, paired with the earlier clip.

    Texts are not compared.

    Args:
        content: the data.
        limit: see `searched`.

    Returns:
        Pairs of a test clip and a train clip, then pairs of a valid clip and a train clip, then pairs of a test
        clip and a valid clip. Each of these three groups is sorted by the smallest distance of a pair.
    """
    rows = searched(content, limit=limit)
    pairs = []
    for known, later in _LATER.items():
        matches = _matches(content, np.concatenate([rows[split] for split in later]), known)
        repeats = [
            DuplicatePair(content.ids[row], content.splits[row], content.ids[other], known, distances)
            for (row, other), distances in matches.items()
        ]
        pairs += sorted(repeats, key=lambda pair: (later.index(pair.split), min(pair.distances.values())))
    return pairs


def without_duplicates(content: FeatureFile, drop: Literal["train", "test"]) -> tuple[FeatureFile, list[str]]:
    """Return `content` without one clip of each pair of duplicates across splits, and a note on the removed clips.

    Args:
        content: the data; it is not changed.
        drop: "train" removes the clip of the earlier split, and "test" removes the clip of the later split. The
            order of the splits is train, valid, test.

    Raises:
        InputError: no clip of a split would remain.
    """
    before, dropped = content, Counter[str]()
    while pairs := duplicate_pairs(content):  # repeated, since each search finds only the nearest clip
        ids = {pair.other if drop == "train" else pair.id for pair in pairs}
        dropped.update(split for name, split in zip(content.ids, content.splits, strict=True) if name in ids)
        rest = [row for row, name in enumerate(content.ids) if name not in ids]
        content = content.select(np.asarray(rest, dtype=np.int64))
    if emptied := [split for split in SPLITS if split in before.splits and split not in content.splits]:
        raise InputError(
            f"--drop-duplicates {drop} would remove all {' and '.join(emptied)} clips, since equal clips are in other "
            f"splits; pass --drop-duplicates {'test' if drop == 'train' else 'train'}, or draw splits: --split "
            f"{DEFAULT_RULE}"
        )
    counts = ", ".join(f"{count} {split}" for split, count in dropped.items()) or "no"
    return content, [f"{counts} clips that are in two splits up to noise or encoding were left out"]


def _matches(content: FeatureFile, rows: NDArray[np.int64], known: str) -> dict[tuple[int, int], dict[str, float]]:
    """Return the distance of each matching pair (row, known row), by kind of similarity.

    The rows of all later splits are searched together: reading a large known split takes most of the time.
    """
    matches: dict[tuple[int, int], dict[str, float]] = {}
    known_rows = content.rows(known)
    largest = max(content.rows("train"), known_rows, key=len)
    for similarity in _compared(content, largest):
        indices = [part[similarity.present[part]] for part in (rows, known_rows, largest)]
        searched_rows = similarity.rows.select(torch.from_numpy(indices[0]))
        known_values, among = (similarity.known.select(torch.from_numpy(index)) for index in indices[1:])
        pairs = near_duplicates(
            searched_rows, known_values, share=similarity.share, scaled=similarity.scaled, among=among
        )
        for i, j, distance in pairs:
            distances = matches.setdefault((int(indices[0][i]), int(indices[1][j])), {})
            distances[similarity.name] = min(distance, distances.get(similarity.name, distance))
    return matches


@dataclass(frozen=True)
class _Similarity:
    """Comparison of query clips with known clips by one kind of values.

    Args:
        name: name of the kind.
        rows: (n, d) values of all clips, in the form for query clips.
        known: (n, d) values of all clips, in the form for known clips. The usual distance is computed from some of
            these values.
        present: (n,) mask of the clips with values.
        share: duplicates are at most this share of the usual distance apart.
        scaled: whether to divide each column by its standard deviation.
    """

    name: str
    rows: StoredRows
    known: StoredRows
    present: NDArray[np.bool_]
    share: float
    scaled: bool = False


def _compared_features(content: FeatureFile) -> dict[str, NDArray[np.float32]]:
    """Return the features of the modalities other than text, since different clips may have equal texts."""
    return {modality: values for modality, values in content.features.items() if modality != "text"}


def _compared(content: FeatureFile, among: NDArray[np.int64]) -> Iterator[_Similarity]:
    for modality, values in _compared_features(content).items():
        stored = StoredRows.of(values)
        yield _Similarity(modality, stored, stored, _nonzero(values), SHARE, scaled=True)
    usual, everywhere = [], np.ones(len(content.ids), dtype=np.bool_)
    widths = {modality: prints.shape[1] for modality, prints in content.fingerprints.items()}
    names = [modality for modality in FINGERPRINT_SHARES if widths.get(modality) == SIZE]
    for modality in names:
        prints, present = content.fingerprints[modality], _nonzero(content.fingerprints[modality])
        rows, share = StoredRows.of(prints).changed(torch.Tensor.float), FINGERPRINT_SHARES[modality]
        sample = among[present[among]]
        distance = usual_distance(rows.select(torch.from_numpy(sample))) if len(sample) else 0.0
        name = f"{modality} fingerprint"
        yield _Similarity(name, rows, rows, present, share)
        if modality == "visual":
            yield _Similarity(name + _MIRRORED, rows.changed(mirrored), rows, present, share)
        usual.append(torch.full((prints.shape[1],), distance or 1.0))
        everywhere &= present
    if len(names) > 1:
        scale = torch.cat(usual)
        prints = np.concatenate([content.fingerprints[modality] for modality in names], axis=1)
        yield from _joint(StoredRows.of(prints).changed(lambda part: part.float() / scale), everywhere)


def _joint(both: StoredRows, present: NDArray[np.bool_]) -> Iterator[_Similarity]:
    """Yield the comparisons of audio and visual fingerprints together.

    The first comparison has no shift. For each shift in `SHIFTS`, one comparison follows
    in each direction.
    """
    yield _Similarity(_BOTH, both, both, present, BOTH_SHARE)
    for shift in SHIFTS:
        later, earlier = (both.changed(partial(view, parts=shift)) for view in (without_start, without_end))
        yield _Similarity(_BOTH + _SHIFTED, later, earlier, present, BOTH_SHARE)
        yield _Similarity(_BOTH + _SHIFTED, earlier, later, present, BOTH_SHARE)


def _nonzero(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return the mask (n,) of the rows to compare: the rows that are not all zero."""
    blocks = (values[start : start + BLOCK] for start in range(0, len(values), BLOCK))
    return np.concatenate([np.empty(0, np.bool_), *(block.any(axis=1) for block in blocks)])
