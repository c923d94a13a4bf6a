"""Clips of one split that stand in another up to noise and encoding, by their features and by their fingerprints."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aadml.data.near_duplicates import SHARE, near_duplicates, usual_distance
from feature_extraction.feature_file import FeatureFile

FINGERPRINT_SHARES = {"audio": 0.2, "visual": 0.12}
"""Shares of the usual distance below which the fingerprints of two clips are one; where both modalities are compared
together, `BOTH_SHARE`. Of 2,000 spoken and handwritten digits, which are alike as few clips are, the nearest unrelated
ones are at 0.38, 0.13 and 0.53; the same clips encoded anew at 0.5, 0.07 and 0.25, with noise of 10 dB at 0.7, 0.25 and
0.34."""

BOTH_SHARE = 0.4
_BOTH = "both fingerprints"
_PAIRS = (("test", "train"), ("valid", "train"), ("test", "valid"))
_LARGEST = 1e12  # products: minutes

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


def is_too_large(content: FeatureFile) -> bool:
    """Tell whether looking for duplicates would take many minutes."""
    dimensions = sum(values.shape[1] for values in content.features.values())
    dimensions += sum(prints.shape[1] for prints in content.fingerprints.values())
    counts = Counter(content.splits)
    return bool(sum(counts[one] * counts[other] for one, other in _PAIRS) * dimensions > _LARGEST)


def duplicate_pairs(content: FeatureFile) -> list[DuplicatePair]:
    """Find for each clip of test and valid the clip of an earlier split that it repeats, if there is one.

    Returns:
        The pairs: test in train, valid in train, test in valid; nearest first.
    """
    return [
        DuplicatePair(content.ids[one], split, content.ids[other], known, distances)
        for split, known in _PAIRS
        for (one, other), distances in _matches(content, content.rows(split), content.rows(known)).items()
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


def _matches(content: FeatureFile, rows: NDArray[np.int64], known: NDArray[np.int64]) -> _Matches:
    """Find pairs of row numbers, and by what they are alike."""
    found: _Matches = {}
    train = content.rows("train")
    largest = train if len(train) > len(known) else known
    for kind, values, share, scaled in _compared(content, largest):
        # all zero: nothing to compare
        one, other, among = (part[values[part].any(dim=1).numpy()] for part in (rows, known, largest))
        pairs = near_duplicates(values[one], values[other], share=share, scaled=scaled, among=values[among])
        for i, j, distance in pairs:
            found.setdefault((int(one[i]), int(other[j])), {})[kind] = distance
    return dict(sorted(found.items(), key=lambda match: min(match[1].values())))


def _compared(content: FeatureFile, among: NDArray[np.int64]) -> Iterator[tuple[str, Tensor, float, bool]]:
    """Give what is compared: its name, values (n, d), the share below which two are one, whether columns are scaled."""
    for modality, values in content.features.items():
        yield modality, torch.from_numpy(values), SHARE, True
    parts = []
    for modality, share in FINGERPRINT_SHARES.items():
        if modality not in content.fingerprints:
            continue
        bytes_of = torch.from_numpy(content.fingerprints[modality]).float()
        there = bytes_of.any(dim=1)
        usual = usual_distance(bytes_of[among][there[among]].double()) if there[among].any() else 0.0
        yield f"{modality} fingerprint", bytes_of, share, False
        parts.append((bytes_of / (usual or 1.0), there))
    if len(parts) > 1:
        everywhere = torch.stack([there for _, there in parts]).all(dim=0)
        yield _BOTH, torch.cat([scaled for scaled, _ in parts], dim=1) * everywhere[:, None], BOTH_SHARE, False
