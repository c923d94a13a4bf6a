"""Galleries of a query: all clips, all clips except the query's own, or the half of the clips without the query."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from aadml.comparison.embeddings import Embeddings
from aadml.comparison.features import Direction, Modality
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.registry import require_entry
from aadml.retrieval.metric_names import Gallery
from aadml.retrieval.metrics import average_precision
from aadml.retrieval.ranking import Grades, Ranking
from aadml.retrieval.scores import Indices
from aadml.retrieval.ties import Values

T = TypeVar("T")
HALVES_SEED = 0


@dataclass(frozen=True)
class Sides:
    """Queries and gallery of a ranking, as rows of embeddings.

    Attributes:
        queries: (q,) rows.
        gallery: (n,) rows.
        partner: (q,) column of each query's own clip in the gallery; None if a query's own clip is absent, or if clips
            have several rows.
    """

    queries: Indices
    gallery: Indices
    partner: Indices | None = None


def sides_of(embeddings: Embeddings, direction: Direction, gallery: Gallery) -> list[Sides]:
    """Return the queries and the gallery of a direction: one entry, or for "disjoint" two entries, one per half.

    For "disjoint", the queries of one half have the other half as gallery. For "without-partner", a query without
    its own clip in the gallery is skipped.

    Raises:
        InputError: for "without-partner", clips have several rows; for "disjoint", a half has no query or no
            gallery item.
    """
    sides = [items(embeddings, modality) for modality in direction]
    if gallery == "disjoint":
        second = halves(embeddings.clip_names, embeddings.labels.cpu().numpy())
        ways = [Sides(sides[0][second[sides[0]] == half], sides[1][second[sides[1]] != half]) for half in (0, 1)]
        if any(not len(way.queries) or not len(way.gallery) for way in ways):
            raise InputError(
                f"disjoint: the {len(embeddings)} clips cannot be halved, because one half has no query or no gallery "
                "item; pass more clips with both modalities, or omit disjoint and the metric map-disjoint"
            )
        return ways
    repeated = len(set(embeddings.ids)) < len(embeddings) or any(m in embeddings.once for m in direction)
    if gallery == "without-partner" and repeated:
        raise InputError(
            "without-partner: clips have several rows (captions), so a query has no single partner; omit "
            "exclude_partner and the metric map-without-partner"
        )
    partner = None if repeated else _columns(*sides)
    if partner is None or (partner >= 0).all():
        return [Sides(sides[0], sides[1], partner)]
    if gallery == "without-partner":  # queries without a partner are skipped
        paired = partner >= 0
        return [Sides(sides[0][paired], sides[1], partner[paired])]
    return [Sides(sides[0], sides[1])]


def halves(names: Sequence[str], labels: NDArray[Any]) -> NDArray[np.int64]:
    """Return the half (n,) of each row, 0 or 1. The halves are random and balanced by class.

    The half of a clip depends on its name, not on the order of the rows. Rows with the same name are in the same
    half.

    Args:
        names: (n,) name of the clip of each row.
        labels: (n,) class of each row.
    """
    clips, first, clip = np.unique(np.asarray(names), return_index=True, return_inverse=True)
    drawn = np.random.default_rng(HALVES_SEED).permutation(len(clips))
    drawn = drawn[np.argsort(labels[first][drawn], kind="stable")]
    half = np.empty(len(clips), dtype=np.int64)
    half[drawn] = np.arange(len(clips)) % 2
    return half[clip]


def without_partner(ranking: Ranking) -> tuple[Indices, Ranking]:
    """Remove the own clip of each query from the query's ranking.

    Args:
        ranking: rankings of b queries, with `above_partner`. Own clips are relevant.

    Returns:
        Indices (c,) of the queries with another relevant item, and their rankings.
    """
    assert ranking.above_partner is not None
    query, count = ranking.query, len(ranking)
    # groups are in order, so the own clip is in the last group that is not below this clip
    reached = ranking.above <= ranking.above_partner[query]
    partner = ranking.offsets[:-1] + np.bincount(query, weights=reached, minlength=count).astype(np.int64) - 1
    later = (np.arange(len(query)) > partner[query]).astype(np.int64)
    shared = ranking.size[partner]
    size, hits = ranking.size.copy(), ranking.hits.copy()
    size[partner] -= 1
    hits[partner] -= 1
    remaining, groups = np.flatnonzero(ranking.relevant > 1), np.flatnonzero(hits)
    grades = None if ranking.grades is None else _without_partner(ranking.grades, partner, remaining, groups)
    counts = np.bincount(query[groups], minlength=count)[remaining]
    return remaining, Ranking(
        items=ranking.items - 1,
        offsets=np.concatenate([[0], np.cumsum(counts)]),
        above=(ranking.above - later)[groups],
        size=size[groups],
        hits_above=(ranking.hits_above - later)[groups],
        hits=hits[groups],
        relevant=ranking.relevant[remaining] - 1,
        tied=(ranking.tied - np.where(shared == 2, 2, shared > 2))[remaining],
        grades=grades,
    )


def _without_partner(grades: Grades, partner: Indices, remaining: Indices, groups: Indices) -> Grades:
    """Return the grades without the own clip of each query.

    `partner` (b,) is the index of the group of each own clip. `remaining` and `groups` are the indices of the
    queries and groups to keep.
    """
    assert grades.partner is not None
    gains, ideal = grades.gains.copy(), grades.ideal.copy()
    gains[partner] -= grades.partner
    rows = np.arange(len(ideal))
    ideal[rows, np.argmax(ideal == grades.partner[:, None], axis=1)] = 0
    return Grades(gains[groups], -np.sort(-ideal, axis=1)[remaining])


def of_others(measure: Callable[[Indices, Ranking], T], index: Indices, ranking: Ranking) -> T | None:
    """Return the result of `measure` for the queries `index` (b,) after the removal of own clips.

    A query whose own clip is its only relevant item is dropped. If no query remains, the result is None.
    """
    remaining, rest = without_partner(ranking)
    return measure(index[remaining], rest) if len(remaining) else None


def average_precision_without_partner(ranking: Ranking) -> Values:
    """Compute AP (b,) without the query's own clip. This clip is neither in the gallery nor relevant."""
    return average_precision(ranking)


def average_precision_disjoint(ranking: Ranking) -> Values:
    """Compute AP (b,) over the half of the clips without the query. The halves are drawn once, balanced by class."""
    return average_precision(ranking)


def items(embeddings: Embeddings, modality: Modality) -> Indices:
    """Return the rows (m,) of the clips with a modality, or one row per label for modalities in `embeddings.once`."""
    present = embeddings.present.get(modality)
    rows = np.arange(len(embeddings)) if present is None else np.flatnonzero(present.cpu().numpy())
    if modality not in embeddings.once:
        return rows
    return rows[np.sort(np.unique(embeddings.labels.cpu().numpy()[rows], return_index=True)[1])]


def _columns(queries: Indices, gallery: Indices) -> Indices:
    """Return the column (q,) of each query's own clip in the gallery, -1 if absent. Both inputs are sorted."""
    columns = np.minimum(np.searchsorted(gallery, queries), max(len(gallery) - 1, 0))
    return np.where(gallery[columns] == queries, columns, -1) if len(gallery) else np.full(len(queries), -1)


def check_once(embeddings: Embeddings, once: Collection[str], place: str) -> None:
    """Check that the rows of each label are equal in every modality of `once`.

    Args:
        embeddings: vectors and labels.
        once: names of the modalities to rank once per label.
        place: first words of the message, such as "once: ".

    Raises:
        InputError: the rows of a label differ, or a modality is absent.
    """
    first, label = np.unique(embeddings.labels.numpy(), return_index=True, return_inverse=True)[1:]
    for modality in once:
        require_entry(embeddings.vectors, modality, "modality to rank once")
        vectors = embeddings.matrix(modality)
        differ = (vectors != vectors[torch.from_numpy(first[label])]).any(1)
        if differ.any():
            raise InputError(
                f"{place}{modality}: a row of clip '{embeddings.ids[int(differ.nonzero()[0])]}' differs from another "
                "row of its label; list only modalities with equal rows per label, such as the sound of clips with "
                "several captions"
            )
