"""Evaluation of embeddings: every direction and metric, with ties, bounds and chance levels."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import torch
from torch import Tensor

from aadml.comparison.embeddings import Embeddings
from aadml.comparison.features import Direction
from aadml.comparison.relevance import LABEL, Relevant
from aadml.feature_extraction.ground.errors import InputError
from aadml.retrieval import metrics
from aadml.retrieval.directions import CUTOFFS, Queries, Units, nothing_relevant, score_direction
from aadml.retrieval.galleries import Sides, of_others, sides_of
from aadml.retrieval.metric_functions import Function, check_cutoff, function_of
from aadml.retrieval.metric_names import OTHER_GALLERIES, Gallery, place_of
from aadml.retrieval.ranking import Ranking, over_rankings
from aadml.retrieval.results import DirectionResult, Evaluation, both_ways
from aadml.retrieval.sampling import SEED, QuerySample, drawn, restricted
from aadml.retrieval.scores import Indices, MatrixScores, ScoreSource, score_source
from aadml.retrieval.ties import Values


def mean_average_precision(
    embeddings: Embeddings,
    direction: Direction,
    *,
    queries: Indices | None = None,
) -> float:
    """Compute MAP of one direction over the whole gallery: the exact expectation over all orders of tied items.

    Args:
        embeddings: embeddings with the two modalities of `direction`.
        direction: (queries, gallery).
        queries: (q,) rows to use as queries; by default all.

    Raises:
        InputError: no query has a relevant item, or the embeddings lack a modality or cannot be compared.
    """
    return float(per_query(embeddings, direction, metrics.average_precision, rows=queries).mean())


def mean_figure(embeddings: Embeddings, metric: str) -> float:
    """Return the mean of a metric, such as "recall@10", over the queries of each direction, then over all directions.

    Raises:
        InputError: an invalid metric or cutoff, embeddings that cannot be compared or cannot have the gallery of the
            metric, or no query with a relevant item.
    """
    function, gallery = function_of(metric), OTHER_GALLERIES.get(metric, "full")
    directions = embeddings.directions()
    for direction in directions:
        check_cutoff(metric, len(sides_of(embeddings, direction, "full")[0].gallery))
    means = [float(per_query(embeddings, direction, function, gallery).mean()) for direction in directions]
    return sum(means) / len(means)


def evaluate(
    embeddings: Embeddings,
    *,
    protocol: str = "inductive",
    split: str = "test",
    extra: Collection[str] = (),
    cutoffs: Sequence[int] = CUTOFFS,
    gallery: Gallery = "full",
    queries: int | None = None,
) -> Evaluation:
    """Score embeddings in every direction.

    Args:
        embeddings: vectors and their relevance (see `Embeddings.relevance`).
        protocol: name of the protocol that made the embeddings, for the record.
        split: name of the split, for the record.
        extra: metrics to compute beside the metrics of every evaluation, by the names that
            `aadml.retrieval.metric_functions.requested` accepts, such as "recall@3".
        cutoffs: K of precision@K and the other metrics at cutoffs. A K below 1 or above the gallery size is
            dropped. If no K is left, K is the gallery size.
        gallery: items ranked for each query: all clips ("full"), all clips except the query's own
            ("without-partner"), or the half of the clips without the query ("disjoint").
        queries: number of queries to draw at random in each direction; None uses all queries. The gallery is not
            sampled.

    Raises:
        InputError: fewer than two modalities, vectors that cannot be compared, an argument that is unknown or out
            of range, or no query with a relevant item.
    """
    pairs = embeddings.directions()
    if not pairs:
        modalities = f"only {', '.join(embeddings.vectors)}" if embeddings.vectors else "no modality"
        raise InputError(f"the embeddings have {modalities}; pass embeddings of two modalities")
    clusters = embeddings.clusters
    units, clip = np.unique(np.asarray(embeddings.clip_names, dtype=object), return_inverse=True)
    unit = clip
    if clusters is not None:
        names = [clusters[name] for name in embeddings.ids]
        units, unit = np.unique(np.asarray(names, dtype=object), return_inverse=True)
    task = _Task(embeddings, gallery, tuple(extra), tuple(cutoffs), tuple(units.tolist()), unit, clip)
    rows, sample = _sample(embeddings, pairs, gallery, queries)
    results = tuple(_with_other_galleries(task, direction, rows[direction]) for direction in pairs)
    return Evaluation(
        protocol, split, embeddings.similarity, results, _label_space(embeddings), gallery, embeddings.relevant.name,
        sample, clusters is not None, task.extra,
    )  # fmt: skip


def _sample(
    embeddings: Embeddings, pairs: Sequence[Direction], gallery: Gallery, queries: int | None
) -> tuple[dict[Direction, Indices | None], QuerySample | None]:
    """Return the rows to use as queries of each direction (None for all), and the sample (None if all are used)."""
    if queries is None:
        return dict.fromkeys(pairs), None
    ways = {direction: sides_of(embeddings, direction, gallery) for direction in pairs}
    rows: dict[Direction, Indices | None] = {d: drawn(ways[d], d, queries) for d in pairs}
    counts = {"-".join(d): sum(len(sides.queries) for sides in ways[d]) for d in pairs}
    return rows, None if set(counts.values()) == {queries} else QuerySample(queries, SEED, counts)


@dataclass(frozen=True)
class _Task:
    """Settings shared by all directions; see `evaluate`.

    `unit` (rows,) is the index in `units` of each row's unit, `clip` (rows,) is the number of each row's clip, and
    `matrices` caches score matrices.
    """

    embeddings: Embeddings
    gallery: Gallery
    extra: tuple[str, ...]
    cutoffs: tuple[int, ...]
    units: tuple[str, ...]
    unit: Indices
    clip: Indices
    matrices: dict[tuple[object, ...], MatrixScores] = field(default_factory=dict)

    def scores(self, direction: Direction, sides: Sides) -> ScoreSource:
        """Return the scores of the queries against the gallery. The reverse direction reuses a score matrix."""
        key = direction[0], sides.queries.tobytes(), direction[1], sides.gallery.tobytes()
        reverse = (*key[2:], *key[:2])
        if reverse in self.matrices:
            return MatrixScores(np.ascontiguousarray(self.matrices[reverse].matrix.T))
        source = _source(self.embeddings, direction, sides)
        if isinstance(source, MatrixScores):
            self.matrices[key] = source
        return source

    def result(self, direction: Direction, sides: Sides, items: int) -> DirectionResult:
        """Score the queries of `sides`; `items` is the size of the smallest gallery of the direction."""
        relevance = self.embeddings.relevant
        relevant = relevance.between(self.embeddings, sides.queries, sides.gallery)
        groups, ids = relevance.groups(self.embeddings), [self.embeddings.ids[i] for i in sides.queries]
        groups = None if groups is None else groups[sides.queries]
        clips = self.clip[sides.queries], self.clip[sides.gallery]
        units = Units(self.units, self.unit[sides.queries], self.unit[sides.gallery], clips)
        named = Queries(direction, ids, units, groups, dict(enumerate(self.embeddings.class_names)))
        return score_direction(
            self.scores(direction, sides),
            relevant,
            named,
            extra=self.extra if relevance is LABEL else self._with_usual_metrics(items),
            cutoffs=self.cutoffs,
            partner=_partner(relevant, sides, self.gallery),
            exclude_partner=self.gallery == "without-partner",
        )

    def _with_usual_metrics(self, items: int) -> tuple[str, ...]:
        """Return the requested metrics and the usual metrics of instance retrieval."""
        usual = ("precision", "recall", "hit-rate", "mrr", "ndcg@10" if items >= 10 else "ndcg")
        return (*self.extra, *(name for name in usual if name not in self.extra))


def _with_other_galleries(task: _Task, direction: Direction, rows: Indices | None) -> DirectionResult:
    """Score a direction, including the requested metrics of other galleries; `rows` are the queries, None for all."""
    ways = restricted(sides_of(task.embeddings, direction, task.gallery), rows)
    items = min(len(sides.gallery) for sides in ways) - (task.gallery == "without-partner")
    results = [task.result(direction, sides, items) for sides in ways]
    result = results[0] if len(results) == 1 else both_ways(*results)
    figures = dict(result.figures)
    for metric in task.extra:
        gallery = OTHER_GALLERIES.get(metric)
        if gallery is not None and place_of(metric) not in figures:
            other = _with_other_galleries(replace(task, gallery=gallery, extra=()), direction, rows)
            place = place_of(metric)[0]
            values = {"map": other.map, "chance": float(other.chance.mean()), "queries": len(other.ids)}
            figures |= {(place, name): value for name, value in values.items()}
    return replace(result, figures=figures)


def _partner(relevant: Relevant, sides: Sides, gallery: Gallery) -> Indices | None:
    """Return the column (q,) of each query's own clip in the gallery.

    The result is None if `sides.partner` is None, or if an own clip is not relevant. The own clip of a query
    without relevant items is not checked.

    Raises:
        InputError: the gallery is "without-partner", and an own clip is not relevant.
    """
    partner = sides.partner
    if partner is not None and relevant.at(partner)[relevant.some].all():
        return partner
    if gallery == "without-partner":
        raise InputError(
            "without-partner: the own clip of a query is not relevant, so own clips cannot be excluded; "
            "omit exclude_partner and the metric map-without-partner"
        )
    return None


def _source(embeddings: Embeddings, direction: Direction, sides: Sides) -> ScoreSource:
    queries = embeddings.of(direction[0], torch.from_numpy(sides.queries))
    gallery = embeddings.of(direction[1], torch.from_numpy(sides.gallery))
    return score_source(queries, gallery, embeddings.similarity)


def _label_space(embeddings: Embeddings) -> dict[str, tuple[float, float]]:
    labels = embeddings.labels
    classes = len(embeddings.class_names) or int(labels.max()) + 1
    inside = bool((labels >= 0).all()) and int(labels.max()) < classes
    spaces = [m for m, v in embeddings.vectors.items() if inside and v.shape[1] == classes > 1]
    known = {m: labels if m not in embeddings.present else labels[embeddings.present[m]] for m in spaces}
    return {m: label_space_quality(embeddings.there(m).cpu(), known[m].cpu()) for m in spaces if len(known[m])}


def per_query(
    embeddings: Embeddings,
    direction: Direction,
    metric: Function,
    gallery: Gallery = "full",
    *,
    rows: Indices | None = None,
) -> Values:
    """Compute a metric (q,) for each of the q queries that have a relevant item in the gallery.

    Args:
        embeddings: embeddings with the two modalities of `direction`.
        direction: (queries, gallery).
        metric: function of a ranking.
        gallery: "full", "without-partner" or "disjoint"; see `evaluate`.
        rows: (r,) rows to use as queries; by default all.

    Raises:
        InputError: no query has a relevant item, or the embeddings lack a modality, cannot be compared or cannot
            have the gallery.
    """

    def measured(_: Indices, ranking: Ranking) -> Values:
        return metric(ranking)

    measure = partial(of_others, measured) if gallery == "without-partner" else measured
    values: list[Values] = []
    for sides in restricted(sides_of(embeddings, direction, gallery), rows):
        source = _source(embeddings, direction, sides)
        relevant = embeddings.relevant.between(embeddings, sides.queries, sides.gallery)
        partner = _partner(relevant, sides, gallery) if gallery == "without-partner" else None
        parts = over_rankings(source, relevant, measure, partner=partner)
        values += [part for part in parts if part is not None]
    if not values:
        raise nothing_relevant("-".join(direction), exclude_partner=gallery == "without-partner")
    return np.concatenate(values)


def label_space_quality(vectors: Tensor, labels: Tensor) -> tuple[float, float]:
    """Return the accuracy and log-loss of vectors that contain one probability or score per class.

    Args:
        vectors: (n, C) floats. Non-negative rows with the sum 1 (up to 1e-4) contain probabilities. If one row
            differs from this form, all rows contain scores for a softmax.
        labels: (n,) int64 in 0..C-1.

    Returns:
        Mean accuracy and mean log-loss in nats. If the correct class and k - 1 other classes share the highest
        value of a vector, the accuracy of this vector is 1/k. Probabilities below 1e-12 count as 1e-12.
    """
    wide = vectors.double()
    scores = wide.gather(1, labels[:, None])
    best = (wide == wide.amax(1, keepdim=True)).double()
    accuracy = (best.gather(1, labels[:, None])[:, 0] / best.sum(1)).mean()
    probable = bool((wide >= 0).all()) and bool(torch.allclose(wide.sum(1), torch.ones(1).double(), atol=1e-4))
    log = scores.log() if probable else scores - torch.logsumexp(wide, 1, keepdim=True)
    return float(accuracy), float(-log.clamp_min(np.log(1e-12)).mean())
