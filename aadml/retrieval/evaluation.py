"""The evaluation of embeddings: every direction, every metric, with ties, bounds and chance beside each figure."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import get_args

import numpy as np
import torch
from torch import Tensor

from aadml.comparison.embeddings import Embeddings
from aadml.comparison.features import Direction, Modality
from aadml.comparison.relevance import LABEL, Relevant
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.registry import lookup
from aadml.retrieval import metrics
from aadml.retrieval.directions import CUTOFFS, score_relevance
from aadml.retrieval.galleries import Sides, of_others, sides_of
from aadml.retrieval.label_space import label_space_quality
from aadml.retrieval.legacy_running_map import running_average_precision
from aadml.retrieval.metric_functions import Function, check_cutoff, function_of
from aadml.retrieval.metric_names import OTHER_GALLERIES, Gallery, place_of
from aadml.retrieval.ranking import Ranking, over_rankings
from aadml.retrieval.results import DirectionResult, Evaluation, both_ways
from aadml.retrieval.sampling import QuerySample, asked_by, drawn
from aadml.retrieval.scores import Indices, MatrixScores, ScoreSource, score_source
from aadml.retrieval.ties import Values

NDCG_AT = 10


def mean_average_precision(
    embeddings: Embeddings,
    direction: Direction,
    *,
    queries: Indices | None = None,
    similarity: str | None = None,
) -> float:
    """MAP of one direction: the whole gallery is ranked, ties count by exact expectation.

    Args:
        embeddings: of both modalities.
        direction: (queries, gallery).
        queries: the rows that ask; by default all.
        similarity: instead of the one that belongs to the embeddings.
    """
    function = metrics.average_precision
    return float(_over_direction(embeddings, direction, function, asking=queries, similarity=similarity).mean())


def mean_figure(embeddings: Embeddings, metric: str) -> float:
    """Give one figure ("recall@10"), the mean over the queries of a direction, as its mean over all directions.

    Raises:
        InputError: an unknown metric, or a cutoff beyond the size of a gallery.
    """
    function, directions = function_of(metric), embeddings.directions()
    gallery: Gallery = OTHER_GALLERIES.get(metric, "full")
    for direction in directions:
        check_cutoff(metric, len(sides_of(embeddings, direction, "full")[0].gallery))
    means = [float(_over_direction(embeddings, one, function, gallery).mean()) for one in directions]
    return sum(means) / len(means)


def evaluate(
    embeddings: Embeddings,
    *,
    directions: Sequence[Direction] | None = None,
    similarity: str | None = None,
    protocol: str = "inductive",
    split: str = "test",
    extra: Collection[str] = (),
    cutoffs: Sequence[int] = CUTOFFS,
    precision: str = "float32",
    once: Collection[Modality] | None = None,
    gallery: Gallery = "full",
    queries: int | None = None,
    query_seed: int = 0,
    threads: int | None = None,
) -> Evaluation:
    """Score embeddings in every direction.

    Args:
        embeddings: what is relevant, they say themselves (see `Embeddings.relevance`).
        directions: (queries, gallery) pairs; by default all there are.
        similarity: instead of the one that belongs to the embeddings.
        protocol: how the embeddings were made; every figure carries it.
        split: which clips these are.
        extra: further metrics: names of METRICS, with a cutoff where they take one ("recall@3").
        cutoffs: the K of precision@K and the like, beside the scope curve; those above the gallery's size are left out.
        precision: of the scores, "float32" or "float64": scores equal in it are ties.
        once: modalities of which one item a label is ranked, by default those the embeddings name. Sound with five
            captions a clip comes as five rows a clip, the clip as label: `once=("audio",)` makes it n clips against
            5 n captions.
        gallery: what each query ranks: all clips ("full"), all but its own, which is then not relevant either
            ("without-partner"), or the half of the clips that it is not of, both halves in turn ("disjoint").
        queries: how many ask in each direction, drawn at random; every one ranks the whole gallery all the same. None
            lets all ask.
        query_seed: of that draw.
        threads: by default as many as torch uses.

    Raises:
        InputError: fewer than two modalities, different dimensions, NaN, an unknown name, nothing relevant anywhere, or
            more queries than there are.
    """
    pairs = tuple(embeddings.directions() if directions is None else directions)
    if not pairs:
        raise InputError(f"embeddings of {', '.join(embeddings.vectors) or 'nothing'} alone; retrieval needs two kinds")
    lookup(dict.fromkeys(get_args(Gallery)), gallery, "gallery")
    chosen = similarity or embeddings.similarity
    embeddings = embeddings if once is None else replace(embeddings, once=tuple(once))
    task = _Task(embeddings, gallery, chosen, precision, tuple(extra), tuple(cutoffs), threads)
    asking, sample = _sample(embeddings, pairs, gallery, queries, query_seed)
    results = tuple(_with_other_galleries(task, direction, asking[direction]) for direction in pairs)
    relevance = embeddings.relevant.name
    return Evaluation(protocol, split, chosen, results, _label_space(embeddings), gallery, relevance, sample)


def _sample(
    embeddings: Embeddings, pairs: Sequence[Direction], gallery: Gallery, queries: int | None, seed: int
) -> tuple[dict[Direction, Indices | None], QuerySample | None]:
    """Draw who asks in each direction; None where all do."""
    if queries is None and seed:
        raise InputError(f"query_seed: {seed} given, but no queries are drawn; say how many (queries)")
    if queries is None:
        return dict.fromkeys(pairs), None
    ways = {direction: sides_of(embeddings, direction, gallery) for direction in pairs}
    rows: dict[Direction, Indices | None] = {one: drawn(ways[one], one, queries, seed) for one in pairs}
    there = {"-".join(one): sum(len(way.queries) for way in ways[one]) for one in pairs}
    return rows, None if set(there.values()) == {queries} else QuerySample(queries, seed, there)


@dataclass(frozen=True)
class _Task:
    """What is the same in all directions of an evaluation; see `evaluate`."""

    embeddings: Embeddings
    gallery: Gallery
    similarity: str
    precision: str
    extra: tuple[str, ...]
    cutoffs: tuple[int, ...]
    threads: int | None
    made: dict[tuple[object, ...], MatrixScores] = field(default_factory=dict)

    def scores(self, direction: Direction, sides: Sides) -> ScoreSource:
        """Score the queries against the gallery; a matrix of scores serves both ways."""
        one, other = ((m, rows.tobytes()) for m, rows in zip(direction, (sides.queries, sides.gallery), strict=True))
        if (other, one) in self.made:
            return MatrixScores(np.ascontiguousarray(self.made[other, one].matrix.T))
        rows = sides.queries, sides.gallery
        queries, candidates = (_vectors(self.embeddings, m, own) for m, own in zip(direction, rows, strict=True))
        source = score_source(queries, candidates, self.similarity, precision=self.precision)
        if isinstance(source, MatrixScores):
            self.made[one, other] = source
        return source

    def result(self, direction: Direction, sides: Sides, items: int) -> DirectionResult:
        """Score the queries of one pair of sides; `items` is the smallest gallery of the direction."""
        relevance, names = self.embeddings.relevant, self.embeddings.class_names
        relevant, groups = _relevant(self.embeddings, direction, sides), relevance.groups(self.embeddings)
        return score_relevance(
            self.scores(direction, sides),
            relevant,
            groups=None if groups is None else groups[sides.queries],
            direction=direction,
            ids=[self.embeddings.ids[i] for i in sides.queries],
            names=dict(enumerate(names)),
            extra=self.extra if relevance is LABEL else self._also(items),
            cutoffs=self.cutoffs,
            partner=_partner(relevant, sides, self.gallery),
            exclude_partner=self.gallery == "without-partner",
            threads=self.threads,
        )

    def _also(self, items: int) -> tuple[str, ...]:
        """Name the metrics that are usual where relevance is not that of a class, beside those asked for."""
        usual = ("precision", "recall", "hit-rate", "mrr", "ndcg@10" if items >= NDCG_AT else "ndcg")
        return (*self.extra, *(name for name in usual if name not in self.extra))


def _with_other_galleries(task: _Task, direction: Direction, asking: Indices | None) -> DirectionResult:
    """Score a direction, with the figures of other galleries that were asked for by name; None lets all ask."""
    ways = asked_by(sides_of(task.embeddings, direction, task.gallery), asking)
    items = min(len(sides.gallery) for sides in ways) - (task.gallery == "without-partner")
    found = [task.result(direction, sides, items) for sides in ways]
    result = found[0] if len(found) == 1 else both_ways(*found)
    figures = dict(result.figures)
    for metric in task.extra:
        gallery = OTHER_GALLERIES.get(metric)
        if gallery is not None and place_of(metric) not in figures:
            other = _with_other_galleries(replace(task, gallery=gallery, extra=()), direction, asking)
            place = place_of(metric)[0]
            values = {"map": other.map, "chance": float(other.chance.mean()), "queries": len(other.ids)}
            figures |= {(place, name): value for name, value in values.items()}
    return replace(result, figures=figures)


def _relevant(embeddings: Embeddings, direction: Direction, sides: Sides) -> Relevant:
    return embeddings.relevant.along(direction, embeddings, sides.queries, sides.gallery)


def _partner(relevant: Relevant, sides: Sides, gallery: Gallery) -> Indices | None:
    """Give the place of each query's own clip where that is relevant to every query that has anything relevant."""
    own = sides.partner
    if own is not None and relevant.at(own)[relevant.some].all():
        return own
    if gallery == "without-partner":
        raise InputError("without-partner: a query's own clip is not always relevant here, so taking it out is no task")
    return None


def _vectors(embeddings: Embeddings, modality: Modality, rows: Indices) -> Tensor:
    known: dict[str, Modality] = {str(name): name for name in embeddings.vectors}
    return embeddings.of(lookup(known, modality, "modality among the embeddings"), torch.from_numpy(rows))


def _label_space(embeddings: Embeddings) -> dict[str, tuple[float, float]]:
    labels = embeddings.labels
    classes = len(embeddings.class_names) or int(labels.max()) + 1
    inside = bool((labels >= 0).all()) and int(labels.max()) < classes
    spaces = [m for m, v in embeddings.vectors.items() if inside and v.shape[1] == classes > 1]
    own = {m: labels if m not in embeddings.present else labels[embeddings.present[m]] for m in spaces}
    return {m: label_space_quality(embeddings.there(m).cpu(), own[m].cpu()) for m in spaces if len(own[m])}


def running_average_precisions(
    embeddings: Embeddings,
    direction: Direction,
    *,
    gallery: Gallery = "full",
    queries: Indices | None = None,
    similarity: str | None = None,
) -> Values:
    """The running variant of AP for each query (q,), see `aadml.retrieval.legacy_running_map`."""
    return _over_direction(
        embeddings, direction, running_average_precision, gallery, asking=queries, similarity=similarity
    )


def _over_direction(
    embeddings: Embeddings,
    direction: Direction,
    metric: Function,
    gallery: Gallery = "full",
    *,
    asking: Indices | None = None,
    similarity: str | None = None,
) -> Values:
    """Measure each query of a direction that has something relevant (q,)."""

    def measured(_: Indices, ranking: Ranking) -> Values:
        return metric(ranking)

    measure = partial(of_others, measured) if gallery == "without-partner" else measured
    found: list[Values] = []
    for sides in asked_by(sides_of(embeddings, direction, gallery), asking):
        rows = sides.queries, sides.gallery
        queries, candidates = (_vectors(embeddings, m, own) for m, own in zip(direction, rows, strict=True))
        source = score_source(queries, candidates, similarity or embeddings.similarity)
        relevant = _relevant(embeddings, direction, sides)
        partner = _partner(relevant, sides, gallery) if gallery == "without-partner" else None
        parts = over_rankings(source, relevant, measure, partner=partner)
        found += [part for part in parts if part is not None]
    if not found:
        raise InputError(f"{'-'.join(direction)}: no query has a relevant item")
    return np.concatenate(found)
