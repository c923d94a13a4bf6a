"""Division of clips into train, valid and test by shares, class by class; groups are not divided."""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.feature_file.content import UNLABELLED, FeatureFile
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import texts
from aadml.feature_extraction.manifest import RECORDING, SPLITS

DEFAULT_RULE = "random:0.7/0.1/0.2"
"""Division of clips without splits: shares of train, valid and test."""
_EMPTY = (1e8, 1e6, 1e7)  # penalty for a class without train, valid, test clips; above any distance from the shares
_COVERED = (0, 2)  # a class with one group is in train; a class with two groups is also in test
_SMALLEST = 0.1  # clips; lower bound of a wanted count as divisor
_ROUNDS = 20
_SWAPPED = 200  # groups that may be swapped; any other groups suffice to reach the shares
_ATTEMPTS = 400  # divided by the number of groups: number of placements, each in a different order
_LEAST = 1e-6  # smallest change of the objective that counts


def shares_of(text: str) -> tuple[float, float, float]:
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


def divide(
    labels: Sequence[Sequence[str]],
    groups: Sequence[Hashable],
    shares: tuple[float, float, float],
    seed: int,
) -> list[str]:
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
    covering = [split for split in _COVERED if shares[split]]
    generator = np.random.default_rng(seed)
    attempts = []
    for attempt in range(max(1, _ATTEMPTS // len(table))):
        order = generator.permutation(len(table)).tolist()
        if attempt == 0:
            order.sort(key=lambda number: -table[number].clips)
        attempts.append(_placed(table, _Counts(table, shares, covering), order))
    for _ in range(_ATTEMPTS // len(table)):  # with few groups, placing them in one order reaches too few divisions
        order, start = generator.permutation(len(table)).tolist(), generator.random(len(table))
        attempts.append(_placed(table, _Counts(table, shares, covering), order, start))
    _, place = min(attempts, key=lambda attempt: attempt[0])
    split_of = {group.name: SPLITS[place[number]] for number, group in enumerate(table)}
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


def divided(content: FeatureFile, rule: str, seed: int) -> FeatureFile:
    """Return the clips with random splits, and with a note in the provenance.

    Recordings are not divided. A clip of several classes counts in each class.

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
    splits = tuple(divide(labels, recordings(content), shares_of(shares), seed))
    counts = ", ".join(f"{splits.count(part)} {part}" for part in SPLITS)
    how = ", no recording divided" if RECORDING in content.columns else ""
    note = f"the split was drawn at random ({shares}, seed {seed}{how}): {counts}"
    return with_other_splits(content, splits, note)


def _placed(
    table: Sequence["_Group"], counts: "_Counts", order: Sequence[int], start: NDArray[np.float64] | None = None
) -> tuple[float, dict[int, int]]:
    """Place the groups in the given order, by the objective or by random numbers `start`, and improve the division.

    Returns:
        The objective, less that of an empty division, and the split of each group.
    """
    cost, place = 0.0, dict[int, int]()
    for number in order:
        changes = {split: counts.change(table[number], -1, split) for split in counts.possible}
        split = min(changes, key=lambda split: changes[split])
        if start is not None:
            split = counts.possible[int(start[number] * len(counts.possible))]
        counts.move(table[number], -1, split)
        place[number] = split
        cost += changes[split]
    return cost + _improve(table, counts, place, order[:_SWAPPED]), place


@dataclass(frozen=True)
class _Group:
    """Group of clips.

    Attributes:
        name: name of the group.
        clips: number of clips.
        labels: pairs of a class and its number of clips, after a first pair of None and the number of all clips.
    """

    name: Hashable
    clips: int
    labels: tuple[tuple[str | None, int], ...]


def _table(labels: Sequence[Sequence[str]], groups: Sequence[Hashable]) -> list[_Group]:
    sizes: Counter[Hashable] = Counter(groups)
    classes: dict[Hashable, Counter[str]] = {group: Counter() for group in sizes}
    for group, clip_labels in zip(groups, labels, strict=True):
        classes[group].update(clip_labels)
    return [_Group(name, size, ((None, size), *sorted(classes[name].items()))) for name, size in sizes.items()]


class _Counts:
    """Number of clips in each split, in total and for each class, and the objective of these counts.

    The total has the key None in place of a class.
    """

    def __init__(self, table: Sequence[_Group], shares: tuple[float, float, float], covered: Sequence[int]) -> None:
        self.possible = [split for split in range(3) if shares[split]]
        self._shares = shares
        groups = Counter(label for group in table for label, _ in group.labels)
        self._wanted: Counter[str | None] = Counter()
        for group in table:
            self._wanted.update(dict(group.labels))
        self._covered = {label: frozenset(() if label is None else covered[: groups[label]]) for label in groups}
        self._of = {label: [0, 0, 0] for label in self._wanted}

    def change(self, group: _Group, old: int, new: int) -> float:
        """Return the change in the objective if a group moves from split `old` to split `new`.

        For a group without a split, `old` is -1.
        """
        total = 0.0
        for label, count in group.labels:
            counts, wanted = self._of[label], self._wanted[label]
            total += self._terms(counts, wanted, count, old, new)
            covered = self._covered[label]
            if old in covered and counts[old] == count:
                total += _EMPTY[old]
            if new in covered and counts[new] == 0:
                total -= _EMPTY[new]
        return total

    def move(self, group: _Group, old: int, new: int) -> None:
        for label, count in group.labels:
            if old >= 0:
                self._of[label][old] -= count
            self._of[label][new] += count

    def _terms(self, counts: Sequence[int], wanted: int, count: int, old: int, new: int) -> float:
        total = 0.0
        for split, sign in ((old, -1), (new, 1)):
            if split >= 0:
                target = self._shares[split] * wanted
                before = counts[split] - target
                total += ((before + sign * count) ** 2 - before**2) / max(target, _SMALLEST)
        return total


def _improve(table: Sequence[_Group], counts: _Counts, place: dict[int, int], order: Sequence[int]) -> float:
    """Move and swap groups while the objective falls, and return the change in the objective."""
    total = 0.0
    for _ in range(_ROUNDS):
        before = total
        for position, number in enumerate(order):
            total += _moved(table, counts, place, number)
            for other in order[position + 1 :]:
                total += _swapped(table, counts, place, number, other)
        if total == before:
            break
    return total


def _moved(table: Sequence[_Group], counts: _Counts, place: dict[int, int], number: int) -> float:
    group, old = table[number], place[number]
    for new in counts.possible:
        change = counts.change(group, old, new) if new != old else 0.0
        if change < -_LEAST:
            counts.move(group, old, new)
            place[number] = new
            return change
    return 0.0


def _swapped(table: Sequence[_Group], counts: _Counts, place: dict[int, int], number: int, other: int) -> float:
    first, second, old, new = table[number], table[other], place[number], place[other]
    if old == new or first.labels == second.labels:
        return 0.0
    change = counts.change(first, old, new)
    counts.move(first, old, new)
    change += counts.change(second, new, old)
    if change < -_LEAST:
        counts.move(second, new, old)
        place[number], place[other] = new, old
        return change
    counts.move(first, new, old)
    return 0.0
