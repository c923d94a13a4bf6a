"""Random samples of queries against the whole gallery, for galleries too large to rank for every query."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from aadml.comparison.features import Direction
from aadml.feature_extraction.ground.errors import InputError
from aadml.retrieval.galleries import Sides
from aadml.retrieval.scores import Indices

FEWEST = 2
"""Minimum number of queries of a sample: one query has no interval."""
SEED = 0
"""Seed of the draw."""


@dataclass(frozen=True)
class QuerySample:
    """Size and seed of a query sample.

    Attributes:
        queries: number drawn in each direction, uniformly and without replacement.
        seed: seed of the draw. Directions with the same query clips draw the same sample.
        of: name of a direction -> number of queries from which the sample is drawn.
    """

    queries: int
    seed: int
    of: Mapping[str, int]


def drawn(ways: Sequence[Sides], direction: Direction, queries: int) -> Indices:
    """Draw the rows (q,) to use as queries of a direction, in increasing order.

    Args:
        ways: all queries of the direction, with their galleries.
        direction: direction of the queries, for messages.
        queries: number of rows.

    Raises:
        InputError: `queries` is below two or above the number of queries.
    """
    rows = np.sort(np.concatenate([way.queries for way in ways]))
    if not FEWEST <= queries <= len(rows):
        raise InputError(
            f"queries is {queries}; pass a number from {FEWEST} to {len(rows)} (the number of queries "
            f"of {'-'.join(direction)}), or omit queries to use all"
        )
    return np.sort(np.random.default_rng(SEED).choice(rows, queries, replace=False))


def restricted(ways: Sequence[Sides], rows: Indices | None) -> list[Sides]:
    """Return the queries among `rows` (q,), with their galleries; all queries if `rows` is None.

    Raises:
        InputError: no queries remain.
    """
    if rows is None:
        return list(ways)
    chosen = [(way, np.isin(way.queries, rows)) for way in ways]
    remaining = [
        replace(way, queries=way.queries[mask], partner=None if way.partner is None else way.partner[mask])
        for way, mask in chosen
        if mask.any()
    ]
    if not remaining:
        raise InputError(
            f"queries: none of the {len(rows)} drawn queries has both modalities of the direction; draw more queries, "
            "or omit the metric map-without-partner"
        )
    return remaining
