"""Division of clips into train, valid and test by shares, class by class; groups are not divided."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from aadml.data.inspection.column_statistics import row_hashes
from aadml.feature_extraction.feature_file.content import UNLABELLED, FeatureFile
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import texts
from aadml.feature_extraction.manifest import RECORDING, SPLITS

DEFAULT_RULE = "random:0.7/0.1/0.2"
"""Division of clips without splits: shares of train, valid and test."""
_DEVIATION = 0.15
"""If groups lead further from a wanted share, copies of features are divided."""
_EMPTY = (1e8, 1e6, 1e7)  # penalty for a class without train, valid, test clips; above any distance from the shares
_COVERED = (0, 2)  # a class with one group is in train; a class with two groups is also in test
_SMALLEST = 0.1  # clips; lower bound of a wanted count as divisor
_ROUNDS = 20
_SWAPPED = 200  # groups that may be swapped; any other groups suffice to reach the shares
_ATTEMPTS = 400  # divided by the number of groups: number of placements, each in a different order
_LEAST = 1e-6  # smallest change of the objective that counts

Shares = tuple[float, float, float]
"""Shares of train, valid and test; their sum is 1."""
_Classes = Mapping[str | None, int]
"""Number of clips of each class in a group; the first item is None, with the number of all clips."""


def shares_of(text: str) -> Shares:
    """Parse the shares of train, valid and test, such as "0.7/0.1/0.2".

    Raises:
        InputError: a text other than three numbers, a negative share, a sum other than 1, or a share of 0 for train.
    """
    try:
        train, valid, test = (float(part) for part in text.split("/"))
    except ValueError as error:
        raise InputError(
            f"the shares '{text}' are not three numbers; write train/valid/test, for example, 0.7/0.1/0.2"
        ) from error
    if not (min(train, valid, test) >= 0 and train > 0 and abs(train + valid + test - 1) < 1e-6):
        raise InputError(
            f"shares '{text}': the sum is {train + valid + test:g}, and the smallest share is "
            f"{min(train, valid, test):g}; pass shares of at least 0 with the sum 1, and train above 0"
        )
    return train, valid, test


def divide(labels: Sequence[Sequence[str]], groups: Sequence[Hashable], shares: Shares, seed: int) -> list[str]:
    """Divide clips at random, with a search for the division closest to the shares, overall and in each class.

    The groups are placed one by one, larger groups first, in the split with the lowest objective. Then groups are
    moved or swapped while a change lowers the objective. With few groups, this search is repeated with the groups
    in random orders, and then from random divisions. The division with the lowest objective is returned.

    The objective has one term per split for all clips, and one term per split for each class. A term is the squared
    difference between the number of clips and the wanted number, divided by the wanted number. Penalties keep a
    class with one group in train. They also keep clips of a class with several groups in train and in test, if the
    share of test is above 0.

    Args:
        labels: the classes of each of n clips: none, one or several.
        groups: (n,) groups; clips of a group are in the same split.
        shares: shares of train, valid and test; their sum is 1.
        seed: seed of the draws; equal seeds produce equal divisions.

    Returns:
        The split of each clip, n names.
    """
    table = _table(labels, groups)
    classes, count = list(table.values()), len(table)
    generator = np.random.default_rng(seed)
    attempts = []
    for attempt in range(max(1, _ATTEMPTS // count)):
        order = generator.permutation(count).tolist()
        if attempt == 0:
            order.sort(key=lambda number: -classes[number][None])
        attempts.append(_Division(classes, shares).fill(order))
    for _ in range(_ATTEMPTS // count):  # with few groups, placing them in one order reaches too few divisions
        order, start = generator.permutation(count).tolist(), generator.random(count)
        attempts.append(_Division(classes, shares).fill(order, start))
    best = min(attempts, key=lambda division: division.objective)
    split_of = {group: SPLITS[split] for group, split in zip(table, best.place, strict=True)}
    return [split_of[group] for group in groups]


def with_other_splits(content: FeatureFile, splits: Sequence[str], note: str) -> FeatureFile:
    """Return `content` with other `splits` (n,), and with `note` added to the provenance of each modality."""
    origins = {name: content.provenance.get(name, {}) for name in content.features}
    provenance = {name: {**origin, "notes": [*texts(origin.get("notes")), note]} for name, origin in origins.items()}
    return replace(content, splits=tuple(splits), provenance=provenance)


def recordings(content: FeatureFile) -> tuple[str, ...]:
    """Return the recording of each clip: its cell of the column `recording`, or its id if there is none."""
    names = content.columns.get(RECORDING, content.ids)
    return tuple(name or clip for name, clip in zip(names, content.ids, strict=True))


def source_groups(names: Sequence[str], features: Mapping[str, NDArray[np.float32]]) -> list[int]:
    """Return a group number per clip; clips with equal features in a modality other than text form a group.

    Args:
        names: (n,) names of recordings; clips with equal names form a group.
        features: by modality, (n, d). Rows of zeros are not compared.
    """
    columns: list[Sequence[Hashable]] = [names]
    for modality, values in features.items():
        if modality != "text":
            (zero,) = row_hashes(np.zeros((1, values.shape[1]), dtype=np.float32))
            columns.append(["" if digest == zero else digest for digest in row_hashes(values)])
    return connected(columns)


def connected(columns: Sequence[Sequence[Hashable]]) -> list[int]:
    """Return a group number per row; rows with equal nonempty values in one of the columns (n,) form a group."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    edges, count = [], len(columns[0])
    for values in columns:
        first: dict[Hashable, int] = {}
        edges += [(row, first.setdefault(value, row)) for row, value in enumerate(values) if value]
    rows, others = np.asarray(edges, dtype=np.int64).reshape(-1, 2).T
    graph = coo_array((np.ones(len(rows)), (rows, others)), shape=(count, count))
    groups: list[int] = connected_components(graph, directed=False)[1].tolist()
    return groups


def divided(content: FeatureFile, rule: str, seed: int) -> FeatureFile:
    """Return the clips with random splits, and with a note in the provenance.

    Recordings are not divided. Clips with equal features in a modality other than text count as one recording, unless
    the shares could then not be reached. A clip of several classes counts in each class.

    Args:
        content: the clips; their splits are ignored.
        rule: "random:TRAIN/VALID/TEST" with the shares of the splits.
        seed: seed of the draw.

    Raises:
        InputError: the rule is not a random division, or its shares are invalid.
    """
    kind, _, shares = rule.partition(":")
    if kind != "random":
        raise InputError(
            f"--split {rule} is not a random division; write random:TRAIN/VALID/TEST, as in {DEFAULT_RULE}"
        )
    codes: list[list[int]] = [[] if label == UNLABELLED else [label] for label in content.labels.tolist()]
    if content.all_labels is not None:
        codes = [np.flatnonzero(row).tolist() for row in content.all_labels]
    labels = [[content.class_names[code] for code in of_clip] for of_clip in codes]
    names, wanted = recordings(content), shares_of(shares)
    groups = source_groups(names, content.features)
    splits = divide(labels, groups, wanted, seed)
    reached = (splits.count(part) / len(splits) for part in SPLITS)
    if any(abs(part - share) > _DEVIATION for part, share in zip(reached, wanted, strict=True)):
        splits = divide(labels, names, wanted, seed)
    counts = ", ".join(f"{splits.count(part)} {part}" for part in SPLITS)
    how = divided_recordings(content, groups, splits)
    note = f"the split was drawn at random ({shares}, seed {seed}{how}): {counts}"
    return with_other_splits(content, splits, note)


def divided_recordings(content: FeatureFile, groups: Sequence[int], splits: Sequence[str]) -> str:
    """Return words for a note: the number of groups (n,) in several `splits` (n,); empty for clips without groups."""
    if RECORDING not in content.columns and len(set(groups)) == len(groups):
        return ""
    parts = Counter(group for group, _ in set(zip(groups, splits, strict=True)))
    count = sum(number > 1 for number in parts.values())
    return f", {count} recordings divided" if count else ", no recording divided"


def _table(labels: Sequence[Sequence[str]], groups: Sequence[Hashable]) -> dict[Hashable, _Classes]:
    """Return the number of clips of each class in each group; None counts all clips of the group."""
    clips: dict[Hashable, Counter[str]] = defaultdict(Counter)
    for group, clip_labels in zip(groups, labels, strict=True):
        clips[group].update(clip_labels)
    sizes = Counter(groups)
    return {group: {None: sizes[group], **dict(sorted(counts.items()))} for group, counts in clips.items()}


class _Division:
    """Division of groups of clips, with the number of clips of each class in each split.

    Args:
        table: number of clips of each class in each group; see `_table`.
        shares: shares of train, valid and test.

    Attributes:
        place: split of each group; -1 for a group without a split.
        objective: objective, less that of an empty division.
    """

    def __init__(self, table: Sequence[_Classes], shares: Shares) -> None:
        self.place, self.objective = [-1] * len(table), 0.0
        self._table, self._shares = table, shares
        self._possible = [split for split in range(3) if shares[split]]
        groups = Counter(label for group in table for label in group)
        self._wanted: Counter[str | None] = Counter()
        for group in table:
            self._wanted.update(group)
        covered = [split for split in _COVERED if shares[split]]
        self._covered = {label: () if label is None else covered[:count] for label, count in groups.items()}
        self._counts = {label: [0, 0, 0] for label in groups}

    def fill(self, order: Sequence[int], start: NDArray[np.float64] | None = None) -> "_Division":
        """Place the groups in the given order, and improve the division.

        Each group is placed by the objective, or by its number in `start` (groups,), drawn from 0 to 1.
        """
        for number in order:
            changes = {split: self._change(number, split) for split in self._possible}
            split = min(changes, key=lambda split: changes[split])
            if start is not None:
                split = self._possible[int(start[number] * len(self._possible))]
            self._move(number, split)
            self.objective += changes[split]
        self.objective += self._improve(order[:_SWAPPED])
        return self

    def _change(self, number: int, new: int) -> float:
        """Return the change in the objective if a group moves to split `new`."""
        total, old = 0.0, self.place[number]
        for label, count in self._table[number].items():
            counts, covered = self._counts[label], self._covered[label]
            total += self._terms(counts, self._wanted[label], count, old, new)
            if old in covered and counts[old] == count:
                total += _EMPTY[old]
            if new in covered and counts[new] == 0:
                total -= _EMPTY[new]
        return total

    def _terms(self, counts: Sequence[int], wanted: int, count: int, old: int, new: int) -> float:
        total = 0.0
        for split, sign in ((old, -1), (new, 1)):
            if split >= 0:
                target = self._shares[split] * wanted
                before = counts[split] - target
                total += ((before + sign * count) ** 2 - before**2) / max(target, _SMALLEST)
        return total

    def _move(self, number: int, new: int) -> None:
        for label, count in self._table[number].items():
            if self.place[number] >= 0:
                self._counts[label][self.place[number]] -= count
            self._counts[label][new] += count
        self.place[number] = new

    def _improve(self, order: Sequence[int]) -> float:
        """Move and swap groups while the objective falls, and return the change in the objective."""
        total = 0.0
        for _ in range(_ROUNDS):
            before = total
            for position, number in enumerate(order):
                total += self._moved(number)
                for other in order[position + 1 :]:
                    total += self._swapped(number, other)
            if total == before:
                break
        return total

    def _moved(self, number: int) -> float:
        for new in self._possible:
            change = self._change(number, new) if new != self.place[number] else 0.0
            if change < -_LEAST:
                self._move(number, new)
                return change
        return 0.0

    def _swapped(self, number: int, other: int) -> float:
        old, new = self.place[number], self.place[other]
        if old == new or self._table[number] == self._table[other]:
            return 0.0
        change = self._change(number, new)
        self._move(number, new)
        change += self._change(other, old)
        if change < -_LEAST:
            self._move(other, old)
            return change
        self._move(number, old)
        return 0.0
