"""Dividing clips into train, valid and test: stated shares, class by class, and groups that stay together."""

from collections import Counter
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.manifest import SPLITS

_EMPTY = (1e8, 1e6, 1e7)  # the cost of a class without train, valid, test clips: above any distance from the shares
_ORDER = (0, 2, 1)  # a class of one group is for train, one of two has test clips too
_SMALLEST = 0.1  # clips: a smaller wanted count weighs no more
_ROUNDS = 20
_EXCHANGED = 200  # groups that are exchanged one with another; where there are more, the others come near the shares
_ATTEMPTS = 400  # divided by the number of groups: how often few groups are placed, each time in another order
_LEAST = 1e-6  # change of the cost that counts


def shares_of(text: str) -> tuple[float, float, float]:
    """Read shares of train, valid and test: "0.7/0.1/0.2".

    Raises:
        InputError: not three numbers, one below zero, a sum other than 1, or nothing for train.
    """
    try:
        train, valid, test = (float(part) for part in text.split("/"))
    except ValueError as error:
        raise InputError(f"shares '{text}': write train/valid/test, for example 0.7/0.1/0.2") from error
    if not (min(train, valid, test) >= 0 and train > 0 and abs(train + valid + test - 1) < 1e-6):
        raise InputError(f"shares '{text}': none may be negative, train must be above 0, and their sum must be 1")
    return train, valid, test


def divide(
    labels: Sequence[Sequence[str]],
    groups: Sequence[Hashable],
    shares: tuple[float, float, float],
    seed: int,
    covered: Collection[str] = ("train", "test"),
) -> list[str]:
    """Divide clips at random, so that every class, and all clips together, come as near to the shares as groups allow.

    Each group goes, larger ones first, where it lowers the cost most; then groups move or change places as long as
    that lowers it. The cost is, over splits, the squared distance from the wanted count divided by that count, of all
    clips and of the clips of each class. A class has clips in each of the `covered` splits whose share is above 0,
    where it has as many groups; train comes first, then test.

    Args:
        labels: the classes of each of n clips: none, one or several.
        groups: (n,) clips of one group stay in one split.
        shares: of train, valid and test; their sum is 1.
        seed: same seed, same division.
        covered: the splits that no class shall miss.

    Returns:
        The n splits.
    """
    table = _table(labels, groups)
    covering = [split for split in _ORDER if shares[split] and SPLITS[split] in covered]
    generator = np.random.default_rng(seed)
    attempts = []
    for attempt in range(max(1, _ATTEMPTS // len(table))):
        order = generator.permutation(len(table)).tolist()
        if attempt == 0:
            order.sort(key=lambda number: -table[number].clips)
        attempts.append(_placed(table, _Counts(table, shares, covering), order))
    _, place = min(attempts, key=lambda found: found[0])
    split_of = {group.name: SPLITS[place[number]] for number, group in enumerate(table)}
    return [split_of[group] for group in groups]


def _placed(table: Sequence["_Group"], counts: "_Counts", order: Sequence[int]) -> tuple[float, dict[int, int]]:
    """Place the groups one after the other, then exchange some; give the cost and the split of each."""
    cost, place = 0.0, dict[int, int]()
    for number in order:
        changes = {split: counts.change(table[number], -1, split) for split in counts.possible}
        split = min(changes, key=lambda split: changes[split])
        counts.move(table[number], -1, split)
        place[number] = split
        cost += changes[split]
    return cost + _exchange(table, counts, place, order[:_EXCHANGED]), place


@dataclass(frozen=True)
class _Group:
    name: Hashable
    clips: int
    labels: tuple[tuple[str, int], ...]


def _table(labels: Sequence[Sequence[str]], groups: Sequence[Hashable]) -> list[_Group]:
    sizes: Counter[Hashable] = Counter(groups)
    classes: dict[Hashable, Counter[str]] = {group: Counter() for group in sizes}
    for group, of in zip(groups, labels, strict=True):
        classes[group].update(of)
    return [_Group(name, size, tuple(sorted(classes[name].items()))) for name, size in sizes.items()]


class _Counts:
    """How many clips each split has, of all and of each class, and what that costs."""

    def __init__(self, table: Sequence[_Group], shares: tuple[float, float, float], covered: Sequence[int]) -> None:
        self.possible = [split for split in range(3) if shares[split]]
        self._shares = shares
        self._all = [0, 0, 0]
        self._clips = sum(group.clips for group in table)
        self._wanted = Counter({label: 0 for group in table for label, _ in group.labels})
        groups: Counter[str] = Counter()
        for group in table:
            for label, count in group.labels:
                self._wanted[label] += count
                groups[label] += 1
        self._covered = {label: frozenset(covered[: groups[label]]) for label in groups}
        self._of = {label: [0, 0, 0] for label in self._wanted}

    def change(self, group: _Group, old: int, new: int) -> float:
        """Give what the cost changes by if a group leaves a split (-1: it is in none yet) for another."""
        total = self._terms(self._all, self._clips, group.clips, old, new)
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
        """Count a group in another split."""
        parts = [(self._all, group.clips), *((self._of[label], count) for label, count in group.labels)]
        for counts, count in parts:
            if old >= 0:
                counts[old] -= count
            counts[new] += count

    def _terms(self, counts: Sequence[int], wanted: int, count: int, old: int, new: int) -> float:
        total = 0.0
        for split, sign in ((old, -1), (new, 1)):
            if split >= 0:
                target = self._shares[split] * wanted
                before = counts[split] - target
                total += ((before + sign * count) ** 2 - before**2) / max(target, _SMALLEST)
        return total


def _exchange(table: Sequence[_Group], counts: _Counts, place: dict[int, int], order: Sequence[int]) -> float:
    """Move groups, and let two change places, as long as that lowers the cost; give what it changed by."""
    total = 0.0
    for _ in range(_ROUNDS):
        before = total
        for position, one in enumerate(order):
            total += _moved(table, counts, place, one)
            for two in order[position + 1 :]:
                total += _exchanged(table, counts, place, one, two)
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


def _exchanged(table: Sequence[_Group], counts: _Counts, place: dict[int, int], one: int, two: int) -> float:
    first, second = place[one], place[two]
    alike = (table[one].clips, table[one].labels) == (table[two].clips, table[two].labels)
    if first == second or alike:
        return 0.0
    change = counts.change(table[one], first, second)
    counts.move(table[one], first, second)
    change += counts.change(table[two], second, first)
    if change < -_LEAST:
        counts.move(table[two], second, first)
        place[one], place[two] = second, first
        return change
    counts.move(table[one], second, first)
    return 0.0
