"""Where relevant items stand among the sorted scores of their queries, and which scores are tied.

Score and relevance are packed into one number a gallery item, so that sorting plain numbers is all the work there is:
of scores up to 1 in float32 these have 32 bits. A few rows are sorted at a time, so that every pass over them finds
them in a core's cache.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.ground.errors import InputError
from aadml.retrieval.scores import Indices, Scores

Bits = NDArray[np.signedinteger[Any]]
SORTED = 1 << 16  # scores sorted at a time
_MAGNITUDE = {4: 2**31 - 1, 8: 2**63 - 1}
"""Bytes of a float -> all of its bits but the sign."""


@dataclass(frozen=True)
class Places:
    """Places in a block of b queries by n items, each row sorted best first, the block flattened.

    Attributes:
        hits: (h,) where relevant items stand; among tied items their order means nothing.
        start: (g,) where a group of two or more tied items begins.
        size: (g,) how many items are in it.
    """

    hits: Indices
    start: Indices
    size: Indices


def sorted_places(scores: Scores, relevant: NDArray[np.bool_]) -> Places:
    """Sort the gallery for each query.

    Args:
        scores: (b, n) floats; higher is better; ties are equal values (minus zero equals zero).
        relevant: (b, n) booleans.

    Raises:
        InputError: a score is NaN or infinite.
    """
    items = scores.shape[1]
    rows = max(1, SORTED // items)
    hits, ties = [], []
    for first in range(0, len(scores), rows):
        found, equal = _of_few_rows(scores[first : first + rows], relevant[first : first + rows])
        hits.append(found + first * items)
        ties.append(equal + first * items)
    return Places(np.concatenate(hits), *_groups(np.concatenate(ties), items))


def _of_few_rows(scores: Scores, relevant: NDArray[np.bool_]) -> tuple[Indices, Indices]:
    """Give where relevant items stand, and what has the score of the next, be it of the next row: places."""
    values = _keys(scores)
    keys = _bits(values)
    keys |= relevant
    values.sort(axis=1)
    flat: NDArray[np.unsignedinteger[Any]] = keys.reshape(-1).view(np.uint32 if keys.itemsize == 4 else np.uint64)
    return _ones(flat.astype(np.uint8) & np.uint8(1)), np.flatnonzero((flat[1:] ^ flat[:-1]) <= 1)


def _keys(scores: Scores) -> Scores:
    """Turn scores into floats that sort best first, and equal ones together, whatever the lowest of their bits is.

    A float up to 1 in magnitude uses one bit less than it has: moving what is below its sign up by one keeps the order.
    """
    if scores.dtype != np.float32:
        scores = np.asarray(scores, dtype=np.float64)
    values: Scores = np.subtract(0, scores, dtype=scores.dtype)  # best first, and no minus zero
    bits = _bits(values)
    magnitude = bits & _MAGNITUDE[bits.itemsize]
    peak = magnitude.max().view(scores.dtype)
    if not np.isfinite(peak):
        raise InputError("scores: there is a NaN or an infinity among them; such items cannot be ranked")
    if peak > 1:  # exact, save for what is 2**1000 times smaller
        return _keys(np.ldexp(scores.astype(np.float64), -int(np.frexp(peak)[1])))
    bits += magnitude
    return values


def _bits(values: Scores) -> Bits:
    """View floats as the integers of their bits."""
    bits: Bits = values.view(np.int32 if values.itemsize == 4 else np.int64)
    return bits


def _ones(flags: NDArray[np.uint8]) -> Indices:
    """Give the places of the ones among zeros and ones (m,).

    Where a tenth or fewer are ones NumPy looks for each of them, which takes thrice as long where it is nearly a tenth
    as where it is more; a few ones at the end make it more.
    """
    found = np.count_nonzero(flags)
    if not len(flags) < 20 * found < 2.5 * len(flags):
        return np.flatnonzero(flags.view(bool))
    more = np.ones(len(flags) // 9 + 1, dtype=np.uint8)
    return np.flatnonzero(np.concatenate([flags, more]).view(bool))[: -len(more)]


def _groups(place: Indices, items: int) -> tuple[Indices, Indices]:
    """Turn places that have the score of the next into groups of tied items within a row: starts and sizes."""
    place = place[place % items < items - 1]
    if not len(place):
        return place, place
    first = np.concatenate([[True], np.diff(place) > 1])
    bounds = np.append(np.flatnonzero(first), len(place))
    return place[first], np.diff(bounds) + 1
