"""Evaluation of one direction: rankings in blocks, and the statistics of these rankings."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aadml.comparison.features import Direction
from aadml.comparison.relevance import Relevant
from aadml.feature_extraction.ground.errors import InputError
from aadml.retrieval import metrics, ties
from aadml.retrieval.first_ranks import FirstRanks
from aadml.retrieval.galleries import of_others, without_partner
from aadml.retrieval.influence import gallery_influence
from aadml.retrieval.legacy_running_map import running_by_chance
from aadml.retrieval.metric_functions import Requested, requested
from aadml.retrieval.metric_names import AT_CUTOFFS, CHANCE_OF, place_of
from aadml.retrieval.ranking import Ranking, over_rankings
from aadml.retrieval.results import SCOPE, Curves, DirectionResult
from aadml.retrieval.scores import Indices, ScoreSource
from aadml.retrieval.ties import Values

CUTOFFS = (1, 5, 10, 50, 100)


@dataclass(frozen=True)
class Queries:
    """Names, units and classes of the queries of a direction.

    Attributes:
        direction: (queries, gallery), the names of the two sides.
        ids: names of the q queries; None for their numbers.
        units: units of the 95 % interval of MAP; None for a separate unit per query and per item.
        groups: (q,) integers, the class of each query, for the table by class; None omits that table.
        names: group -> name, for the table by class.
    """

    direction: Direction = ("audio", "visual")
    ids: Sequence[str] | None = None
    units: "Units | None" = None
    groups: NDArray[Any] | None = None
    names: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Units:
    """Units of the 95 % interval of MAP: clips, or clusters of clips such as speakers.

    Attributes:
        names: names of m units.
        queries: (q,) number of the unit of each query.
        gallery: (n,) number of the unit of each item.
        clips: (q,) and (n,) number of the clip of each query and of each item; None if no item is of a query's clip.
    """

    names: tuple[str, ...]
    queries: Indices
    gallery: Indices
    clips: tuple[Indices, Indices] | None = None

    @classmethod
    def apart(cls, queries: int, items: int) -> "Units":
        """Return a separate unit for each of q `queries` and n `items`."""
        numbers = np.arange(queries + items)
        return cls(tuple(map(str, numbers.tolist())), numbers[:queries], numbers[queries:])


def score_direction(
    source: ScoreSource,
    relevant: Relevant,
    named: Queries = Queries(),
    *,
    extra: Collection[str] = (),
    cutoffs: Sequence[int] = CUTOFFS,
    partner: Indices | None = None,
    exclude_partner: bool = False,
) -> DirectionResult:
    """Score one direction from any scores of queries against items, and any relevance.

    Args:
        source: scores of q queries against n items.
        relevant: items relevant to each query, of the shape of `source`. A query without relevant items is skipped and
            counted.
        named: names, units and classes of the queries.
        extra: metrics to compute beside the metrics of every evaluation, by the names that
            `aadml.retrieval.metric_functions.requested` accepts, such as "recall@3".
        cutoffs: K of precision@K and the other metrics at cutoffs. A K below 1 or above the gallery size is dropped. If
            no K is left, K is the gallery size.
        partner: (q,) column of each query's own clip in the gallery, to add MAP without that clip. The own clip is
            relevant to the query.
        exclude_partner: exclude the query's own clip from the gallery and from the relevant items in every metric. This
            argument requires `partner`.

    Raises:
        InputError: no query with a relevant item, a NaN or infinite score, or an invalid metric or cutoff.
    """
    (queries, items), direction = source.shape, "-".join(named.direction)
    items -= exclude_partner
    shown = np.unique([k for k in cutoffs if 1 <= k <= items] or [items])
    wanted = np.unique([*shown, *(k for k in SCOPE if k <= items)])
    table = [int(k) for k in shown]
    functions = {place_of("map-at-r"): metrics.average_precision_at_r, **requested(extra, table, items)}
    levels = {**requested(AT_CUTOFFS, table, items), **functions}
    measure: Callable[[Indices, Ranking], _DirectionPart | None]
    measure = partial(_measure, wanted=wanted, functions=functions, levels=levels)
    measure = partial(of_others, measure) if exclude_partner else measure
    measured = over_rankings(source, relevant, measure, partner=partner)
    parts = [part for part in measured if part is not None]
    if not parts:
        raise nothing_relevant(direction, exclude_partner=exclude_partner)
    index, counts = (np.concatenate([getattr(part, name) for part in parts]) for name in ("index", "relevant"))
    count = len(index)
    units = named.units or Units.apart(*source.shape)
    clips = units.clips if partner is None else (partner, np.arange(source.shape[1]))
    influence = gallery_influence(source, relevant, clips, excluded=partner if exclude_partner else None)
    by_item = np.bincount(units.gallery, weights=influence, minlength=len(units.names)).astype(np.float64)
    figures = {path: sum(part.figures[path] for part in parts) / count for path in parts[0].figures}
    return DirectionResult(
        direction=named.direction,
        ids=tuple(str(i) if named.ids is None else named.ids[i] for i in index),
        units=units.names,
        unit=units.queries[index],
        by_item=by_item,
        groups=None if named.groups is None else named.groups[index],
        names=named.names,
        gallery=items,
        without_relevant=queries - count,
        average_precision=np.concatenate([part.average_precision for part in parts]),
        bounds=np.concatenate([part.bounds for part in parts], axis=1),
        chance=ties.chance(counts, items),
        first=FirstRanks.joined([part.first for part in parts]),
        first_by_chance=FirstRanks.of(Ranking.by_chance(counts, items)),
        tie_rate=sum(part.tied for part in parts) / (count * items),
        curves=Curves(wanted, *(np.sum([part.curves for part in parts], axis=0) / count)),
        cutoffs=tuple(table),
        figures=figures if partner is None or exclude_partner else figures | _without_partner(parts),
    )


class NothingRelevantError(InputError):
    """Error for a direction without a relevant item for any query."""


def nothing_relevant(direction: str, *, exclude_partner: bool) -> NothingRelevantError:
    """Return the error for a direction without a relevant item for any query."""
    other = " other than its own clip" if exclude_partner else ""
    last = (
        "omit exclude_partner and the metric map-without-partner"
        if exclude_partner
        else "pass clips with both modalities"
    )
    return NothingRelevantError(
        f"{direction}: no query has a relevant item{other}; pass clips with common labels, pass judgments with the ids "
        f"of these clips, or {last}"
    )


@dataclass(frozen=True)
class _DirectionPart:
    """Statistics of a block of rankings: values per query, and sums where values per query would use much memory."""

    index: Indices
    average_precision: Values
    bounds: Values
    first: FirstRanks
    relevant: Indices
    tied: int
    curves: Values
    figures: dict[tuple[str, ...], float]
    others: tuple[Values, Values] | None
    """Average precision and chance level of queries with a relevant item besides their own clip; None if unknown."""


def _measure(
    index: Indices, ranking: Ranking, *, wanted: Indices, functions: Requested, levels: Requested
) -> _DirectionPart:
    hits = metrics.hits_at(ranking, wanted)
    recall, first = hits / ranking.relevant[:, None], FirstRanks.of(ranking)
    figures = {place: function(ranking) for place, function in functions.items()}
    figures |= {(CHANCE_OF, *place): values for place, values in _by_chance(ranking, levels).items()}
    return _DirectionPart(
        index,
        metrics.average_precision(ranking),
        np.stack(metrics.average_precision_bounds(ranking)),
        first,
        ranking.relevant,
        int(ranking.tied.sum()),
        np.stack([hits.sum(axis=0) / wanted, recall.sum(axis=0), first.within(wanted).sum(axis=0)]),
        {path: float(values.sum()) for path, values in figures.items()},
        None if ranking.above_partner is None else _of_others(ranking),
    )


def _by_chance(ranking: Ranking, functions: Requested) -> dict[tuple[str, ...], Values]:
    """Compute the chance levels of metrics."""
    running = place_of("running")
    if running in functions:  # from rankings, the time would be proportional to items times relevant items
        others = {place: function for place, function in functions.items() if place != running}
        return {running: running_by_chance(ranking.relevant, ranking.items), **_by_chance(ranking, others)}
    if ranking.grades is not None:
        tied = Ranking.by_chance(ranking.relevant, ranking.items, ranking.grades)
        return {place: function(tied) for place, function in functions.items()}
    counts, query = np.unique(ranking.relevant, return_inverse=True)
    tied = Ranking.by_chance(counts, ranking.items)
    return {place: function(tied)[query] for place, function in functions.items()}


def _of_others(ranking: Ranking) -> tuple[Values, Values]:
    _, rest = without_partner(ranking)
    return metrics.average_precision(rest), ties.chance(rest.relevant, rest.items)


def _without_partner(parts: Sequence[_DirectionPart]) -> dict[tuple[str, ...], float]:
    """Return MAP, its chance level and the number of queries after the removal of every query's own clip.

    A query whose own clip is its only relevant item is dropped. If no query remains, the result is empty.
    """
    others = [part.others for part in parts if part.others is not None]
    precision, chance = (np.concatenate(values) for values in zip(*others, strict=True))
    if not len(precision):
        return {}
    figures = {"map": float(precision.mean()), "chance": float(chance.mean()), "queries": len(precision)}
    return {("without_partner", name): value for name, value in figures.items()}
