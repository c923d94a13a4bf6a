"""A random sample of queries against the whole gallery, where letting all of them ask would take too long."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from aadml.comparison.features import Direction
from aadml.feature_extraction.ground.errors import InputError
from aadml.retrieval.galleries import Sides
from aadml.retrieval.scores import Indices

FEWEST = 2
"""Queries of a sample: of one alone there is no interval."""


@dataclass(frozen=True)
class QuerySample:
    """Which queries asked, where not all did.

    Attributes:
        queries: how many were drawn in each direction, without replacement and each as likely as any other.
        seed: of the draw; where both directions have the same clips as queries, the same ones are drawn.
        of: name of a direction -> of how many.
    """

    queries: int
    seed: int
    of: Mapping[str, int]


def drawn(ways: Sequence[Sides], direction: Direction, queries: int, seed: int) -> Indices:
    """Draw the rows (q,) that ask in a direction, in order; all of them where as many are asked for.

    Args:
        ways: all who ask in it, and what they rank.
        direction: for the message.
        queries: how many.
        seed: same seed, same rows.

    Raises:
        InputError: fewer than two, more than there are, or a seed below 0.
    """
    if seed < 0:
        raise InputError(f"query_seed: {seed} given; 0 and above are possible")
    rows = np.sort(np.concatenate([way.queries for way in ways]))
    if not FEWEST <= queries <= len(rows):
        raise InputError(
            f"queries: {queries} given; {'-'.join(direction)} has {len(rows)} queries, so {FEWEST} to {len(rows)} are "
            "possible (left out, all of them ask)"
        )
    return np.sort(np.random.default_rng(seed).choice(rows, queries, replace=False))


def asked_by(ways: Sequence[Sides], rows: Indices | None) -> list[Sides]:
    """Leave of all who ask those among `rows`, None for all; who ranks what stays as it is.

    Raises:
        InputError: nobody is left.
    """
    if rows is None:
        return list(ways)
    kept = [(way, np.isin(way.queries, rows)) for way in ways]
    left = [
        replace(way, queries=way.queries[own], partner=None if way.partner is None else way.partner[own])
        for way, own in kept
        if own.any()
    ]
    if not left:
        raise InputError("queries: none of those that were drawn can ask here; take more")
    return left
