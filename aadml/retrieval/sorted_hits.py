"""Positions of relevant items among the sorted scores of their queries, and groups of tied scores.

Score and relevance of a gallery item are packed into one number, so that sorting plain numbers suffices. The number has
32 bits for float32 scores up to 1. A few rows are sorted at a time, so that they stay in the cache.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.ground.errors import InputError
from aadml.retrieval.scores import Indices, Scores

Bits = NDArray[np.signedinteger[Any]]
SORTED = 1 << 17  # maximum number of scores sorted at a time
_MAGNITUDE = {4: 2**31 - 1, 8: 2**63 - 1}
"""Size of a float in bytes -> mask of all bits except the sign."""


def sorted_places(scores: Scores, relevant: NDArray[np.bool_]) -> tuple[Indices, Indices, Indices]:
    """Sort the gallery for each query; return positions of relevant items and groups of ties.

    Args:
        scores: (b, n) floats; higher scores are better. Ties are equal values, and minus zero equals zero.
        relevant: (b, n) booleans.

    Returns:
        Positions (h,) of relevant items, the first position (g,) of each group of two or more tied items, and the
        number (g,) of items of the group. Positions are those in the flattened block of b queries and n items, whose
        rows are sorted best first. The order of tied items is arbitrary.

    Raises:
        InputError: a score is NaN or infinite.
    """
    items = scores.shape[1]
    rows = max(1, SORTED // items)
    hits, ties = [], []
    for first in range(0, len(scores), rows):
        places, tied = _of_few_rows(scores[first : first + rows], relevant[first : first + rows])
        hits.append(places + first * items)
        ties.append(tied + first * items)
    return np.concatenate(hits), *_groups(np.concatenate(ties), items)


def _of_few_rows(scores: Scores, relevant: NDArray[np.bool_]) -> tuple[Indices, Indices]:
    """Return the positions of relevant items, and the positions of items tied with the next item.

    The last item of a row is followed by the first item of the next row.
    """
    values = _keys(scores)
    keys = _bits(values)
    keys |= relevant
    values.sort(axis=1)
    flat: NDArray[np.unsignedinteger[Any]] = keys.reshape(-1).view(np.uint32 if keys.itemsize == 4 else np.uint64)
    return _odd(flat), np.flatnonzero((flat[1:] ^ flat[:-1]) <= 1)


def _keys(scores: Scores) -> Scores:
    """Convert scores to floats that sort best first, with a free lowest bit.

    A float up to 1 in magnitude does not use one of its bits. Shifting the bits below the sign up by one keeps the
    order.
    """
    if scores.dtype != np.float32:
        scores = np.asarray(scores, dtype=np.float64)
    values: Scores = np.subtract(0, scores, dtype=scores.dtype)  # best first, and no minus zero
    bits = _bits(values)
    magnitude = bits & _MAGNITUDE[bits.itemsize]
    peak = magnitude.max().view(scores.dtype)
    if not np.isfinite(peak):
        raise InputError("the scores contain NaN or infinity; pass finite scores")
    if peak > 1:  # exact, except for scores 2**1000 times smaller
        return _keys(np.ldexp(scores.astype(np.float64), -int(np.frexp(peak)[1])))
    bits += magnitude
    return values


def _bits(values: Scores) -> Bits:
    bits: Bits = values.view(np.int32 if values.itemsize == 4 else np.int64)
    return bits


def _odd(numbers: NDArray[np.unsignedinteger[Any]]) -> Indices:
    """Return the indices of the odd numbers (m,).

    If at most a tenth of the flags are set, NumPy searches for each one separately, which takes up to three times as
    long as above a tenth. Unless few are set, further set flags are therefore appended.
    """
    count = len(numbers)
    flags = np.ones(count + count // 9 + 1, dtype=np.uint8)
    flags[:count] = numbers
    flags &= 1
    odd = np.count_nonzero(flags[:count])
    searched = flags[:count] if 20 * odd < count else flags
    return np.flatnonzero(searched.view(bool))[:odd]


def _groups(place: Indices, items: int) -> tuple[Indices, Indices]:
    """Return starts and sizes of groups of tied items within a row, from the positions tied with the next position."""
    place = place[place % items < items - 1]
    if not len(place):
        return place, place
    first = np.concatenate([[True], np.diff(place) > 1])
    bounds = np.append(np.flatnonzero(first), len(place))
    return place[first], np.diff(bounds) + 1
