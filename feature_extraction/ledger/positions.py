"""Positions of the lines of a ledger, by key, in two compact arrays."""

from collections.abc import Iterator

import numpy as np


class Positions:
    """Index from keys to the positions of lines; a key may have several lines.

    Args:
        recent: minimum number of additions after which the arrays are sorted again.
    """

    def __init__(self, recent: int = 50_000) -> None:
        self._most = recent
        self._keys, self._places = np.empty((2, 0), dtype=np.uint64)
        self._recent: dict[int, list[int]] = {}
        self._count = 0

    def __len__(self) -> int:
        """Return the number of lines."""
        return len(self._keys) + self._count

    def add(self, key: int, place: int) -> None:
        """Add a line at position `place`, which is greater than all earlier positions."""
        self._recent.setdefault(key, []).append(place)
        self._count += 1
        if self._count >= max(self._most, len(self._keys) // 8):
            self._sort()

    def of(self, key: int) -> list[int]:
        """Return the positions of the lines of a key, newest first."""
        first, last = (self._keys.searchsorted(np.uint64(key), side) for side in ("left", "right"))
        return [*reversed(self._recent.get(key, [])), *self._places[first:last][::-1].tolist()]

    def all(self) -> Iterator[tuple[int, int]]:
        """Yield the key and the position of every line, ordered by position."""
        self._sort()
        for number in np.argsort(self._places, kind="stable"):
            yield int(self._keys[number]), int(self._places[number])

    def _sort(self) -> None:
        recent = [(key, place) for key, positions in self._recent.items() for place in positions]
        new = np.array(recent, dtype=np.uint64).reshape(-1, 2)
        keys, places = np.append(self._keys, new[:, 0]), np.append(self._places, new[:, 1])
        order = np.lexsort((places, keys))
        self._keys, self._places = keys[order], places[order]
        self._recent, self._count = {}, 0
