"""Clips of one split that stand in another up to noise and encoding, by their features and by their fingerprints."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from aadml.comparison.stored_rows import BLOCK, StoredRows
from aadml.data.splitting.near_duplicates import SHARE, near_duplicates, usual_distance
from aadml.feature_extraction.feature_file import FeatureFile

FINGERPRINT_SHARES = {"audio": 0.2, "visual": 0.12}
"""Shares of the usual distance below which the fingerprints of two clips are one; where both modalities are compared
together, `BOTH_SHARE`. Of 2,000 spoken and handwritten digits, which are alike as few clips are, the nearest unrelated
ones are at 0.38, 0.13 and 0.53; the same clips encoded anew at 0.5, 0.07 and 0.25, with noise of 10 dB at 0.7, 0.25 and
0.34."""

BOTH_SHARE = 0.4
_BOTH = "both fingerprints"
_LATER = {"train": ("test", "valid"), "valid": ("test",)}
"""The splits whose clips are looked for in a split."""
_LARGEST = 1e12  # products: minutes
SAMPLE_SEED = 0
"""Of the clips that are looked for where looking for all would take too long."""

_Matches = dict[tuple[int, int], dict[str, float]]


@dataclass(frozen=True)
class DuplicatePair:
    """A clip that stands in two splits.

    Args:
        id: of the clip in the later split.
        split: of that clip.
        other: id of the clip in the earlier split.
        other_split: of that clip.
        distances: by what they are alike (a modality's features, its fingerprint, the fingerprints of both), as a share
            of the usual distance between nearest neighbors of train, or of the earlier split where that is larger.
    """

    id: str
    split: str
    other: str
    other_split: str
    distances: Mapping[str, float]


def searched(content: FeatureFile, *, limit: bool) -> dict[str, NDArray[np.int64]]:
    """Choose the clips of test and valid that are looked for in earlier splits: split -> row numbers.

    Args:
        content: the data.
        limit: of more than minutes of work, look for a share of them, drawn at random by seed `SAMPLE_SEED`.
    """
    dimensions = sum(values.shape[1] for values in content.features.values())
    dimensions += sum(prints.shape[1] for prints in content.fingerprints.values())
    counts = Counter(content.splits)
    products = sum(counts[one] * counts[known] for known, later in _LATER.items() for one in later) * dimensions
    found = {}
    for split in ("test", "valid"):
        rows = content.rows(split)
        if limit and products > _LARGEST and len(rows):
            count = max(1, int(len(rows) * _LARGEST / products))
            rows = np.sort(np.random.default_rng(SAMPLE_SEED).choice(rows, count, replace=False))
        found[split] = rows
    return found


def duplicate_pairs(content: FeatureFile, *, limit: bool = False) -> list[DuplicatePair]:
    """Find for each clip of test and valid the clip of an earlier split that it repeats, if there is one.

    Args:
        content: the data.
        limit: see `searched`.

    Returns:
        The pairs: test in train, valid in train, test in valid; nearest first.
    """
    rows = searched(content, limit=limit)
    return [
        DuplicatePair(content.ids[one], split, content.ids[other], known, distances)
        for known, later in _LATER.items()
        for split, found in _matches(content, {split: rows[split] for split in later}, known).items()
        for (one, other), distances in found.items()
    ]


def without_duplicates(content: FeatureFile, drop: Literal["train", "test"]) -> tuple[FeatureFile, list[str]]:
    """Leave out one of each two clips that stand in two splits.

    Args:
        content: the data; it stays as it is.
        drop: "train" leaves out the clip of the earlier split (train before valid before test), "test" the other.

    Returns:
        The content without them, and what was left out.
    """
    gone: Counter[str] = Counter()
    while pairs := duplicate_pairs(content):  # again, as only the nearest clip is found each time
        names = {pair.other if drop == "train" else pair.id for pair in pairs}
        gone.update(split for name, split in zip(content.ids, content.splits, strict=True) if name in names)
        kept = [row for row, name in enumerate(content.ids) if name not in names]
        content = content.select(np.asarray(kept, dtype=np.int64))
    counts = ", ".join(f"{count} {split}" for split, count in gone.items()) or "no"
    return content, [f"{counts} clips that stand in two splits up to noise or encoding were left out"]


def _matches(content: FeatureFile, asked: Mapping[str, NDArray[np.int64]], known: str) -> dict[str, _Matches]:
    """Find pairs of row numbers, nearest first, and by what they are alike, for each split that is asked for.

    All are looked for together: what takes long is to go through a large known split.
    """
    found: dict[str, _Matches] = {split: {} for split in asked}
    rows, stored = np.concatenate(list(asked.values())), content.rows(known)
    train = content.rows("train")
    largest = train if len(train) > len(stored) else stored
    for kind, values, there, share, scaled in _compared(content, largest):
        one, other, among = (part[there[part]] for part in (rows, stored, largest))
        some, all_known, wide = (values.select(torch.from_numpy(part)) for part in (one, other, among))
        for i, j, distance in near_duplicates(some, all_known, share=share, scaled=scaled, among=wide):
            row = int(one[i])
            found[content.splits[row]].setdefault((row, int(other[j])), {})[kind] = distance
    return {split: dict(sorted(own.items(), key=lambda match: min(match[1].values()))) for split, own in found.items()}


def _compared(
    content: FeatureFile, among: NDArray[np.int64]
) -> Iterator[tuple[str, StoredRows, NDArray[np.bool_], float, bool]]:
    """Give what is compared.

    Yields:
        Its name, values (n, d), who has any (n,), the share below which two are one, and whether columns are scaled.
    """
    for modality, values in content.features.items():
        yield modality, StoredRows.of(values), _any(values), SHARE, True
    usual, everywhere = [], np.ones(len(content.ids), dtype=np.bool_)
    names = [modality for modality in FINGERPRINT_SHARES if modality in content.fingerprints]
    for modality in names:
        prints, there = content.fingerprints[modality], _any(content.fingerprints[modality])
        rows = StoredRows.of(prints).changed(torch.Tensor.float)
        own = among[there[among]]
        distance = usual_distance(rows.select(torch.from_numpy(own))) if len(own) else 0.0
        yield f"{modality} fingerprint", rows, there, FINGERPRINT_SHARES[modality], False
        usual.append(torch.full((prints.shape[1],), distance or 1.0))
        everywhere &= there
    if len(names) > 1:
        both = StoredRows.of(np.concatenate([content.fingerprints[modality] for modality in names], axis=1))
        scale = torch.cat(usual)
        yield _BOTH, both.changed(lambda prints: prints.float() / scale), everywhere, BOTH_SHARE, False


def _any(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Tell which rows (n,) are not all zero: of those that are, there is nothing to compare."""
    blocks = (values[start : start + BLOCK] for start in range(0, len(values), BLOCK))
    return np.concatenate([np.empty(0, np.bool_), *(block.any(axis=1) for block in blocks)])
