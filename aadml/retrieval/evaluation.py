"""The evaluation of embeddings: every direction, every metric, with ties, bounds and chance beside each figure."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from aadml.options import lookup
from aadml.retrieval import metrics, ties
from aadml.retrieval.label_space import label_space_quality
from aadml.retrieval.ranking import Ranking, rankings
from aadml.retrieval.results import Curves, DirectionResult, Evaluation
from aadml.retrieval.running import running_average_precision
from aadml.retrieval.scores import Indices, ScoreSource, score_source
from aadml.retrieval.ties import Values
from aadml.types import Direction, Embeddings, Modality
from feature_extraction.errors import InputError

CUTOFFS = (1, 5, 10, 50, 100)
SCOPE = tuple(range(10, 1001, 10))

Figures = dict[tuple[str, ...], Values]
"""Where a figure stands in the JSON -> its value for each query (b,)."""


def _running(ranking: Ranking, cutoffs: Indices) -> Figures:
    return {("running_map",): running_average_precision(ranking)}


def _map_at_k(ranking: Ranking, cutoffs: Indices) -> Figures:
    at = metrics.average_precision_at
    return {("map_at", n, str(k)): at(ranking, int(k), n) for n in metrics.NORMALIZERS for k in cutoffs}


EXTRA_METRICS = {"running": _running, "map-at-k": _map_at_k}
"""Metrics that are computed on request; all others always are."""


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
    queries, gallery = (_vectors(embeddings, modality) for modality in direction)
    source = score_source(queries, gallery, similarity or embeddings.similarity)
    labels = embeddings.labels.cpu().numpy()
    found = [metrics.average_precision(ranking) for _, ranking in rankings(source, labels, labels, threads=threads)]
    return float(np.concatenate(found).mean())


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
    once: Collection[Modality] = (),
    threads: int | None = None,
) -> Evaluation:
    """Score embeddings in every direction.

    Args:
        embeddings: an item is relevant to a query if it has its label.
        directions: (queries, gallery) pairs; by default all there are.
        similarity: instead of the one that belongs to the embeddings.
        protocol: how the embeddings were made; every figure carries it.
        split: which clips these are.
        extra: keys of EXTRA_METRICS.
        cutoffs: the K of precision@K and the like, beside the scope curve; those above the gallery's size are left out.
        precision: of the scores, "float32" or "float64": scores equal in it are ties.
        once: modalities of which one item a label is ranked. Audio with five captions a clip comes as five rows a clip,
            the clip as label: `once=("audio",)` makes it n clips against 5 n captions.
        threads: by default as many as torch uses.

    Raises:
        InputError: fewer than two modalities, different dimensions, NaN, an unknown name, or nothing relevant anywhere.
    """
    pairs = tuple(embeddings.directions() if directions is None else directions)
    if not pairs:
        raise InputError(f"embeddings of {', '.join(embeddings.vectors) or 'nothing'} alone; retrieval needs two kinds")
    chosen = similarity or embeddings.similarity
    rows = {modality: _rows(embeddings.labels, modality in once) for modality in embeddings.vectors}
    labels, names = embeddings.labels.cpu().numpy(), embeddings.class_names
    results = []
    for direction in pairs:
        query, gallery = direction
        queries, candidates = (_vectors(embeddings, modality)[rows[modality]] for modality in direction)
        results.append(
            score_direction(
                score_source(queries, candidates, chosen, precision=precision),
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
        extra: keys of EXTRA_METRICS.
        cutoffs: the K of precision@K and the like, beside the scope curve; those above n are left out.
        threads: by default as many as torch uses.

    Raises:
        InputError: no query has anything relevant, a NaN score, or an unknown metric.
    """
    functions = [lookup(EXTRA_METRICS, name, "metric") for name in extra]
    queries, items = source.shape
    if (len(query_groups), len(gallery_groups)) != (queries, items):
        raise InputError(
            f"scores of {queries} queries against {items} items, but groups of {len(query_groups)} and "
            f"{len(gallery_groups)}"
        )
    wanted = np.unique([k for k in (*cutoffs, *SCOPE) if 1 <= k <= items] or [items])
    sums = _Sums(wanted, np.asarray([k for k in cutoffs if 1 <= k <= items] or [items]))
    for index, ranking in rankings(source, query_groups, gallery_groups, threads=threads):
        sums.add(index, ranking, functions)
    if not sums.index:
        raise InputError(f"{'-'.join(direction)}: no query has a relevant item; queries and gallery share no label")
    index = np.concatenate(sums.index)
    return DirectionResult(
        direction=direction,
        ids=tuple(str(i) if ids is None else ids[i] for i in index),
        groups=np.asarray(query_groups)[index],
        names=dict(names or {}),
        gallery=items,
        without_relevant=queries - len(index),
        average_precision=np.concatenate(sums.ap),
        bounds=np.concatenate(sums.bounds, axis=1),
        chance=ties.chance(np.concatenate(sums.relevant), items),
        rank=np.concatenate(sums.rank),
        tie_rate=sums.tied / (len(index) * items),
        curves=sums.curves(len(index)),
        cutoffs=tuple(int(k) for k in sums.cutoffs),
        figures={path: total / len(index) for path, total in sums.figures.items()},
    )


class _Sums:
    """What is gathered block by block: values of queries, and sums where a value of each query would be too much."""

    def __init__(self, wanted: Indices, cutoffs: Indices) -> None:
        self.wanted, self.cutoffs = wanted, cutoffs
        self.index: list[Indices] = []
        self.ap: list[Values] = []
        self.bounds: list[Values] = []
        self.rank: list[Values] = []
        self.relevant: list[Indices] = []
        self.tied = 0
        self.totals = np.zeros((3, len(wanted)))
        self.figures: dict[tuple[str, ...], float] = {}

    def add(self, index: Indices, ranking: Ranking, functions: Iterable[Any]) -> None:
        self.index.append(index)
        self.ap.append(metrics.average_precision(ranking))
        self.bounds.append(np.stack(metrics.average_precision_bounds(ranking)))
        self.rank.append(metrics.best_rank(ranking))
        self.relevant.append(ranking.relevant)
        self.tied += int(ranking.tied.sum())
        hits = metrics.hits_at(ranking, self.wanted)
        rate = metrics.hit_rate_at(ranking, self.wanted)
        self.totals += np.stack([hits.sum(0) / self.wanted, (hits / ranking.relevant[:, None]).sum(0), rate.sum(0)])
        figures: Figures = {("map_at_r",): metrics.average_precision_at(ranking, ranking.relevant)}
        for function in functions:
            figures |= function(ranking, self.cutoffs)
        for path, values in figures.items():
            self.figures[path] = self.figures.get(path, 0.0) + float(values.sum())

    def curves(self, queries: int) -> Curves:
        return Curves(self.wanted, *(self.totals / queries))


def _vectors(embeddings: Embeddings, modality: Modality) -> Tensor:
    vectors = {str(name): vectors for name, vectors in embeddings.vectors.items()}
    return lookup(vectors, modality, "modality among the embeddings")


def _rows(labels: Tensor, once: bool) -> Indices:
    if once:
        return np.sort(np.unique(labels.cpu().numpy(), return_index=True)[1])
    return np.arange(len(labels))


def _label_space(embeddings: Embeddings) -> dict[str, tuple[float, float]]:
    labels = embeddings.labels
    classes = len(embeddings.class_names) or int(labels.max()) + 1
    inside = bool((labels >= 0).all()) and int(labels.max()) < classes
    spaces = {m: v for m, v in embeddings.vectors.items() if inside and v.shape[1] == classes > 1}
    return {modality: label_space_quality(vectors.cpu(), labels.cpu()) for modality, vectors in spaces.items()}
