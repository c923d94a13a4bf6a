"""What a query ranks: the whole gallery, the gallery without its own clip, or the half of the clips it is not of."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from aadml.comparison.embeddings import Embeddings
from aadml.comparison.features import Direction, Modality
from aadml.feature_extraction.ground.errors import InputError
from aadml.retrieval.metric_names import Gallery
from aadml.retrieval.metrics import average_precision
from aadml.retrieval.ranking import Grades, Ranking
from aadml.retrieval.scores import Indices
from aadml.retrieval.ties import Values

T = TypeVar("T")
HALVES_SEED = 0


@dataclass(frozen=True)
class Sides:
    """Who asks and who is ranked, as rows of embeddings.

    Attributes:
        queries: (q,) rows.
        gallery: (n,) rows.
        partner: (q,) the place of each query's own clip in the gallery; None where it has none, or several.
    """

    queries: Indices
    gallery: Indices
    partner: Indices | None = None


def sides_of(embeddings: Embeddings, direction: Direction, gallery: Gallery) -> list[Sides]:
    """Lay out who ranks what in a direction; both ways where the gallery is disjoint from the queries.

    Raises:
        InputError: there is no such gallery for these embeddings, or they are too few.
    """
    sides = [items(embeddings, modality) for modality in direction]
    if gallery == "disjoint":
        second = halves(embeddings.ids, embeddings.labels.cpu().numpy())
        ways = [Sides(sides[0][second[sides[0]] == half], sides[1][second[sides[1]] != half]) for half in (0, 1)]
        if any(not len(way.queries) or not len(way.gallery) for way in ways):
            raise InputError(f"disjoint: {len(embeddings)} clips cannot be halved; two or more are needed")
        return ways
    repeated = len(set(embeddings.ids)) < len(embeddings) or any(m in embeddings.once for m in direction)
    if gallery == "without-partner" and repeated:
        raise InputError("without-partner: clips stand in several rows here (captions), so no row is the partner")
    partner = None if repeated else _places(*sides)
    if partner is None or (partner >= 0).all():
        return [Sides(sides[0], sides[1], partner)]
    if gallery == "without-partner":  # who has no partner to take out is left out
        asking = partner >= 0
        return [Sides(sides[0][asking], sides[1], partner[asking])]
    return [Sides(sides[0], sides[1])]


def halves(ids: Sequence[str], labels: NDArray[Any], *, seed: int = HALVES_SEED) -> NDArray[np.int64]:
    """Halve clips at random, every class as evenly as it goes: 0 or 1 for each row (n,).

    A clip falls by its name, wherever it stands; rows of one name stay together.

    Args:
        ids: n names.
        labels: (n,) of the classes.
        seed: of the draw.
    """
    names, first, name = np.unique(np.asarray(ids), return_index=True, return_inverse=True)
    drawn = np.random.default_rng(seed).permutation(len(names))
    drawn = drawn[np.argsort(labels[first][drawn], kind="stable")]
    half = np.empty(len(names), dtype=np.int64)
    half[drawn] = np.arange(len(names)) % 2
    return half[name]


def without_partner(ranking: Ranking) -> tuple[Indices, Ranking]:
    """Take each query's own clip, which is relevant, out of its ranking.

    Args:
        ranking: of b queries, with `above_partner`.

    Returns:
        The queries (c,) that keep something relevant, by their number, and their rankings.
    """
    assert ranking.above_partner is not None
    query, count = ranking.query, len(ranking)
    reached = ranking.above <= ranking.above_partner[query]  # groups are in order: the partner is in the last of these
    own = ranking.offsets[:-1] + np.bincount(query, weights=reached, minlength=count).astype(np.int64) - 1
    later = (np.arange(len(query)) > own[query]).astype(np.int64)
    shared = ranking.size[own]
    size, hits = ranking.size.copy(), ranking.hits.copy()
    size[own] -= 1
    hits[own] -= 1
    kept, groups = np.flatnonzero(ranking.relevant > 1), np.flatnonzero(hits)
    grades = None if ranking.grades is None else _without_own(ranking.grades, own, kept, groups)
    counts = np.bincount(query[groups], minlength=count)[kept]
    return kept, Ranking(
        items=ranking.items - 1,
        offsets=np.concatenate([[0], np.cumsum(counts)]),
        above=(ranking.above - later)[groups],
        size=size[groups],
        hits_above=(ranking.hits_above - later)[groups],
        hits=hits[groups],
        relevant=ranking.relevant[kept] - 1,
        tied=(ranking.tied - np.where(shared == 2, 2, shared > 2))[kept],
        grades=grades,
    )


def _without_own(grades: Grades, own: Indices, kept: Indices, groups: Indices) -> Grades:
    """Take the grade of each query's own clip out of its group `own` (b,) and out of the ideal ranking."""
    assert grades.own is not None
    gains, ideal = grades.gains.copy(), grades.ideal.copy()
    gains[own] -= grades.own
    rows = np.arange(len(ideal))
    ideal[rows, np.argmax(ideal == grades.own[:, None], axis=1)] = 0
    return Grades(gains[groups], -np.sort(-ideal, axis=1)[kept])


def of_others(measure: Callable[[Indices, Ranking], T], index: Indices, ranking: Ranking) -> T | None:
    """Measure the rankings of queries `index` (b,) without their own clips; None where nothing is relevant then."""
    kept, rest = without_partner(ranking)
    return measure(index[kept], rest) if len(kept) else None


def average_precision_without_partner(ranking: Ranking) -> Values:
    """AP where the query's own clip is neither in the gallery nor relevant."""
    return average_precision(ranking)


def average_precision_disjoint(ranking: Ranking) -> Values:
    """AP over the half of the clips that the query is not of, both halves in turn (by class, one fixed draw)."""
    return average_precision(ranking)


def items(embeddings: Embeddings, modality: Modality) -> Indices:
    """Number the rows that count in a modality: those of clips that have it, one a label where rows repeat."""
    there = embeddings.present.get(modality)
    rows = np.arange(len(embeddings)) if there is None else np.flatnonzero(there.cpu().numpy())
    if modality not in embeddings.once:
        return rows
    return rows[np.sort(np.unique(embeddings.labels.cpu().numpy()[rows], return_index=True)[1])]


def _places(queries: Indices, gallery: Indices) -> Indices:
    """Find the place (q,) of each query's own clip in the gallery, both in order; -1 where it is not there."""
    places = np.minimum(np.searchsorted(gallery, queries), max(len(gallery) - 1, 0))
    return np.where(gallery[places] == queries, places, -1) if len(gallery) else np.full(len(queries), -1)
