"""The evaluation of embeddings: every direction, every metric, with ties, bounds and chance beside each figure."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aadml.comparison.types import Direction, Embeddings, Modality
from aadml.retrieval import metrics, ties
from aadml.retrieval.label_space import label_space_quality
from aadml.retrieval.ranking import Ranking, over_rankings
from aadml.retrieval.requested import Function, Requested, check_cutoff, function_of, requested
from aadml.retrieval.results import Curves, DirectionResult, Evaluation
from aadml.retrieval.running import running_average_precision
from aadml.retrieval.scores import Indices, MatrixScores, ScoreSource, score_source
from aadml.retrieval.ties import Values
from feature_extraction.ground.errors import InputError
from feature_extraction.ground.tables import lookup

CUTOFFS = (1, 5, 10, 50, 100)
SCOPE = tuple(range(10, 1001, 10))


def mean_average_precision(
    embeddings: Embeddings, direction: Direction, *, similarity: str | None = None, threads: int | None = None
) -> float:
    """MAP of one direction: the whole gallery is ranked, ties count by exact expectation.

    Args:
        embeddings: of both modalities.
        direction: (queries, gallery).
        similarity: instead of the one that belongs to the embeddings.
        threads: by default as many as torch uses.
    """
    found = _over_direction(embeddings, direction, metrics.average_precision, similarity, threads)
    return float(found.mean())


def mean_figure(embeddings: Embeddings, metric: str) -> float:
    """Give one figure ("recall@10"), the mean over the queries of a direction, as its mean over all directions.

    Raises:
        InputError: an unknown metric, or a cutoff beyond the size of a gallery.
    """
    function, directions = function_of(metric), embeddings.directions()
    for _, gallery in directions:
        check_cutoff(metric, len(_rows(embeddings.labels, gallery in embeddings.once)))
    means = [float(_over_direction(embeddings, direction, function).mean()) for direction in directions]
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
    threads: int | None = None,
) -> Evaluation:
    """Score embeddings in every direction.

    Args:
        embeddings: an item is relevant to a query if it has its label.
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
        threads: by default as many as torch uses.

    Raises:
        InputError: fewer than two modalities, different dimensions, NaN, an unknown name, or nothing relevant anywhere.
    """
    pairs = tuple(embeddings.directions() if directions is None else directions)
    if not pairs:
        raise InputError(f"embeddings of {', '.join(embeddings.vectors) or 'nothing'} alone; retrieval needs two kinds")
    chosen = similarity or embeddings.similarity
    once = embeddings.once if once is None else once
    rows = {modality: _rows(embeddings.labels, modality in once) for modality in embeddings.vectors}
    labels, names = embeddings.labels.cpu().numpy(), embeddings.class_names
    results = []
    sources: dict[Direction, ScoreSource] = {}
    for direction in pairs:
        query, gallery = direction
        turned = sources.get((gallery, query))
        if isinstance(turned, MatrixScores):
            sources[direction] = MatrixScores(np.ascontiguousarray(turned.matrix.T))
        else:
            queries, candidates = (_vectors(embeddings, modality, once) for modality in direction)
            sources[direction] = score_source(queries, candidates, chosen, precision=precision)
        results.append(
            score_direction(
                sources[direction],
                labels[rows[query]],
                labels[rows[gallery]],
                direction=direction,
                ids=[embeddings.ids[i] for i in rows[query]],
                names=dict(enumerate(names)),
                extra=extra,
                cutoffs=cutoffs,
                threads=threads,
            )
        )
    return Evaluation(protocol, split, chosen, tuple(results), _label_space(embeddings))


def score_direction(
    source: ScoreSource,
    query_groups: NDArray[Any],
    gallery_groups: NDArray[Any],
    *,
    direction: Direction = ("audio", "visual"),
    ids: Sequence[str] | None = None,
    names: Mapping[int, str] | None = None,
    extra: Collection[str] = (),
    cutoffs: Sequence[int] = CUTOFFS,
    threads: int | None = None,
) -> DirectionResult:
    """Score one direction, whatever makes the scores and whatever makes relevant.

    Args:
        source: scores of q queries against n items.
        query_groups: (q,) integers; a gallery item is relevant if it has the query's: class labels, or the numbers of
            clips where an instance is looked for. A query without any relevant item is left out and counted.
        gallery_groups: (n,) integers.
        direction: names of the two sides.
        ids: names of the queries.
        names: group -> name, for the table by class.
        extra: further metrics: names of METRICS, with a cutoff where they take one ("recall@3").
        cutoffs: the K of precision@K and the like, beside the scope curve; those above n are left out.
        threads: by default as many as torch uses.

    Raises:
        InputError: no query has anything relevant, a NaN score, or an unknown metric.
    """
    queries, items = source.shape
    if (len(query_groups), len(gallery_groups)) != (queries, items):
        raise InputError(
            f"scores of {queries} queries against {items} items, but groups of {len(query_groups)} and "
            f"{len(gallery_groups)}"
        )
    wanted = np.unique([k for k in (*cutoffs, *SCOPE) if 1 <= k <= items] or [items])
    shown = np.unique([k for k in cutoffs if 1 <= k <= items] or [items])
    functions = requested(extra, [int(k) for k in shown], items)
    measure = partial(_measure, wanted=wanted, functions=functions)
    parts = list(over_rankings(source, query_groups, gallery_groups, measure, threads=threads))
    if not parts:
        raise InputError(f"{'-'.join(direction)}: no query has a relevant item; queries and gallery share no label")
    index = np.concatenate([part.index for part in parts])
    count = len(index)
    return DirectionResult(
        direction=direction,
        ids=tuple(str(i) if ids is None else ids[i] for i in index),
        groups=np.asarray(query_groups)[index],
        names=dict(names or {}),
        gallery=items,
        without_relevant=queries - count,
        average_precision=np.concatenate([part.average_precision for part in parts]),
        bounds=np.concatenate([part.bounds for part in parts], axis=1),
        chance=ties.chance(np.concatenate([part.relevant for part in parts]), items),
        rank=np.concatenate([part.rank for part in parts]),
        tie_rate=sum(part.tied for part in parts) / (count * items),
        curves=Curves(wanted, *(np.sum([part.curves for part in parts], axis=0) / count)),
        cutoffs=tuple(int(k) for k in shown),
        figures={path: sum(part.figures[path] for part in parts) / count for path in parts[0].figures},
    )


@dataclass(frozen=True)
class _Part:
    """What is kept of a block of rankings: values of queries, and sums where each query's would take too much."""

    index: Indices
    average_precision: Values
    bounds: Values
    rank: Values
    relevant: Indices
    tied: int
    curves: Values
    figures: dict[tuple[str, ...], float]


def _measure(index: Indices, ranking: Ranking, *, wanted: Indices, functions: Requested) -> _Part:
    hits = metrics.hits_at(ranking, wanted)
    recall, rate = hits / ranking.relevant[:, None], metrics.hit_rate_at(ranking, wanted)
    figures: dict[tuple[str, ...], Values] = {("map_at_r",): metrics.average_precision_at_r(ranking)}
    figures |= {place: function(ranking) for place, function in functions.items()}
    return _Part(
        index,
        metrics.average_precision(ranking),
        np.stack(metrics.average_precision_bounds(ranking)),
        metrics.best_rank(ranking),
        ranking.relevant,
        int(ranking.tied.sum()),
        np.stack([hits.sum(axis=0) / wanted, recall.sum(axis=0), rate.sum(axis=0)]),
        {path: float(values.sum()) for path, values in figures.items()},
    )


def _vectors(embeddings: Embeddings, modality: Modality, once: Collection[Modality]) -> Tensor:
    known: dict[str, Modality] = {str(name): name for name in embeddings.vectors}
    name = lookup(known, modality, "modality among the embeddings")
    return embeddings.of(name, torch.from_numpy(_rows(embeddings.labels, name in once)))


def _rows(labels: Tensor, once: bool) -> Indices:
    if once:
        return np.sort(np.unique(labels.cpu().numpy(), return_index=True)[1])
    return np.arange(len(labels))


def _label_space(embeddings: Embeddings) -> dict[str, tuple[float, float]]:
    labels = embeddings.labels
    classes = len(embeddings.class_names) or int(labels.max()) + 1
    inside = bool((labels >= 0).all()) and int(labels.max()) < classes
    spaces = {m: embeddings.matrix(m) for m, v in embeddings.vectors.items() if inside and v.shape[1] == classes > 1}
    return {modality: label_space_quality(vectors.cpu(), labels.cpu()) for modality, vectors in spaces.items()}


def running_average_precisions(
    embeddings: Embeddings, direction: Direction, *, similarity: str | None = None, threads: int | None = None
) -> Values:
    """The running variant of AP for each query (q,), see `aadml.retrieval.running`; args as of the function above."""
    return _over_direction(embeddings, direction, running_average_precision, similarity, threads)


def _over_direction(
    embeddings: Embeddings,
    direction: Direction,
    metric: Function,
    similarity: str | None = None,
    threads: int | None = None,
) -> Values:
    """Measure each query of a direction that has something relevant (q,)."""
    rows = [_rows(embeddings.labels, modality in embeddings.once) for modality in direction]
    queries, gallery = (_vectors(embeddings, modality, embeddings.once) for modality in direction)
    source = score_source(queries, gallery, similarity or embeddings.similarity)
    labels = embeddings.labels.cpu().numpy()
    found = over_rankings(source, labels[rows[0]], labels[rows[1]], lambda _, ranking: metric(ranking), threads=threads)
    return np.concatenate(list(found))
