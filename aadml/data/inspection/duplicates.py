"""Counts of values that repeat within a split or are in two splits."""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice

from aadml.feature_extraction.manifest import SPLITS

_SHOWN = 5  # examples


@dataclass(frozen=True)
class Duplicates:
    """Counts and examples of values that occur more than once.

    Args:
        within: split -> number of values that repeat an earlier value of the split.
        across: pair of splits -> number of distinct values in both splits.
        examples: ids of a few values that are in two splits.
    """

    within: Mapping[str, int]
    across: Mapping[str, int]
    examples: tuple[str, ...]


def find_duplicates(
    values: Sequence[Hashable], splits: Sequence[str], ids: Sequence[str], *, order: Sequence[str] = SPLITS
) -> Duplicates:
    """Count the values repeated within a split and the values common to two splits.

    Args:
        values: (n,) the compared values.
        splits: (n,) split of each value.
        ids: (n,) names for the examples.
        order: names of the splits to count, earlier splits first.
    """
    splits_of: dict[Hashable, Counter[str]] = {}
    for value, split in zip(values, splits, strict=True):
        splits_of.setdefault(value, Counter())[split] += 1
    within = {split: sum(max(counts[split] - 1, 0) for counts in splits_of.values()) for split in order}
    across = {
        f"{split}-{other}": sum(counts.keys() >= {split, other} for counts in splits_of.values())
        for split, other in combinations(order, 2)
    }
    shared = islice((value for value, counts in splits_of.items() if len(counts) > 1), _SHOWN)
    return Duplicates(within, across, tuple(ids[values.index(value)] for value in shared))
