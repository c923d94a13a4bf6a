"""Graded relevance, reciprocal rank and nDCG: against all orders of ties, scikit-learn and pytrec_eval; and chance."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, ndcg_score

from aadml.comparison.embeddings import Embeddings
from aadml.comparison.relevance import RULES, Judged, Judgments, Sharing
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.options import REQUIRED, schema
from aadml.retrieval import METRICS
from aadml.retrieval.directions import Queries, score_direction
from aadml.retrieval.evaluation import evaluate
from aadml.retrieval.metric_names import OTHER_GALLERIES, SMALLER_IS_BETTER
from aadml.retrieval.scores import MatrixScores

seeds = st.integers(0, 2**32 - 1)
NAMES = ("mrr", "mrr@2", "ndcg", "ndcg@3", "map@3", "map-min@3", "map-hits@3", "precision@3", "recall@3", "hit-rate@3")


def drawn(seed, queries=3, items=6):
    generator = np.random.default_rng(seed)
    grades = generator.choice([0, 0, 0.25, 1, 3], (queries, items)).astype(np.float32)
    grades[:, 0] = np.maximum(grades[:, 0], 0.5)
    scores = generator.integers(0, 3, (queries, items)).astype(np.float64)
    return scores, grades


def judged(grades):
    return Judged([(np.flatnonzero(row), row[row > 0]) for row in grades], grades.shape[1])


def of_order(grades):
    """Every metric of one order of items, straight from its definition."""
    hits = grades > 0
    ranks = np.arange(1, len(grades) + 1)
    total = hits.sum()
    precisions = np.cumsum(hits) / ranks
    ideal = np.sort(grades)[::-1]
    first = ranks[hits][0]
    top = (precisions * hits)[:3].sum()

    def gain(values, cutoff):
        return sum(value / math.log2(rank + 1) for rank, value in enumerate(values[:cutoff], 1))

    return {
        "mrr": 1 / first,
        "mrr@2": 1 / first if first <= 2 else 0.0,
        "ndcg": gain(grades, None) / gain(ideal, None),
        "ndcg@3": gain(grades, 3) / gain(ideal, 3),
        "map@3": top / total,
        "map-min@3": top / min(total, 3),
        "map-hits@3": top / max(hits[:3].sum(), 1),
        "precision@3": hits[:3].sum() / 3,
        "recall@3": hits[:3].sum() / total,
        "hit-rate@3": float(hits[:3].any()),
    }


def over_all_orders(scores, grades):
    """Mean of each metric over every order that the scores allow."""
    blocks = [np.flatnonzero(scores == value) for value in np.unique(scores)[::-1]]
    orders = itertools.product(*(itertools.permutations(block) for block in blocks))
    found = [of_order(grades[np.concatenate(order)]) for order in orders]
    return {name: np.mean([one[name] for one in found]) for name in NAMES}


@settings(max_examples=10, deadline=None)
@given(seed=seeds)
def test_every_metric_is_the_mean_over_all_orders_of_ties(seed):
    scores, grades = drawn(seed)
    found = score_direction(MatrixScores(scores), judged(grades), Queries(), extra=NAMES, cutoffs=(3,)).record()
    expected = [over_all_orders(*case) for case in zip(scores, grades.astype(np.float64), strict=True)]
    for name in NAMES:
        assert found.figure(name) == pytest.approx(np.mean([one[name] for one in expected]), abs=1e-7)


@settings(max_examples=20, deadline=None)
@given(seed=seeds)
def test_a_scorer_that_knows_nothing_has_chance_of_every_metric(seed):
    _, grades = drawn(seed)
    constant = MatrixScores(np.zeros(grades.shape))
    names = [*NAMES, "map", "map-at-r"]
    found = score_direction(constant, judged(grades), Queries(), extra=names, cutoffs=(3,)).record()
    chance = {place[1:]: value for place, value in found.figures.items() if place[0] == "chance_of"}
    assert found.map == pytest.approx(found.chance)
    assert chance["metrics", "ndcg@3"] == pytest.approx(found.figure("ndcg@3"))
    assert chance["metrics", "mrr"] == pytest.approx(found.figure("mrr"))
    for key in ("precision_at", "recall_at", "hit_rate_at"):
        assert chance[key, "3"] == pytest.approx(found.figures[key, "3"])
    for place, value in found.figures.items():
        if place[0] == "map_at":
            assert chance[place] == pytest.approx(value)


def test_every_metric_of_the_table_has_its_chance_beside_it():
    generator = np.random.default_rng(0)
    grades = (generator.random((4, 8)) < 0.4).astype(np.float32)
    grades[:, 0] = 1
    left_out = {*OTHER_GALLERIES, *SMALLER_IS_BETTER, "map"}
    names = []
    for name in set(METRICS) - left_out:
        cutoff = schema(METRICS[name]).get("cutoff")
        names.append(f"{name}@2" if cutoff is not None and cutoff.default is REQUIRED else name)
    source = MatrixScores(generator.standard_normal((4, 8)))
    real = score_direction(source, judged(grades), Queries(), extra=names, cutoffs=(2,)).figures
    blind = score_direction(
        MatrixScores(np.zeros((4, 8))), judged(grades), Queries(), extra=names, cutoffs=(2,)
    ).figures
    asked = [path for path in real if ("chance_of", *path) in real]
    assert len(asked) == len(names)
    for path in asked:
        assert blind[path] == pytest.approx(real["chance_of", *path])


def test_multi_label_figures_equal_scikit_learn():
    generator = np.random.default_rng(1)
    queries, gallery = (generator.random((size, 5)) < 0.4 for size in (7, 20))
    queries[:, 0] |= ~queries.any(axis=1)
    gallery[0] = True
    scores = generator.standard_normal((7, 20))
    grades = np.array([[(q & g).sum() / (q | g).sum() for g in gallery] for q in queries])
    found = score_direction(
        MatrixScores(scores), Sharing(queries, gallery, graded=True), Queries(), extra=("ndcg", "ndcg@5")
    )
    assert found.figures["metrics", "ndcg"] == pytest.approx(ndcg_score(grades, scores))
    assert found.figures["metrics", "ndcg@5"] == pytest.approx(ndcg_score(grades, scores, k=5))
    ours = np.mean([average_precision_score(row > 0, line) for row, line in zip(grades, scores, strict=True)])
    assert found.map == pytest.approx(ours)


def test_tied_grades_equal_scikit_learn():
    scores, grades = drawn(5)
    found = score_direction(MatrixScores(scores), judged(grades), Queries(), extra=("ndcg", "ndcg@3"), cutoffs=(3,))
    assert found.figures["metrics", "ndcg"] == pytest.approx(ndcg_score(grades, scores))
    assert found.figures["metrics", "ndcg@3"] == pytest.approx(ndcg_score(grades, scores, k=3))


def test_judged_figures_equal_trec_eval():
    pytrec_eval = pytest.importorskip("pytrec_eval")
    generator = np.random.default_rng(2)
    grades = generator.integers(0, 4, (6, 30)) * (generator.random((6, 30)) < 0.3)
    grades[:, 3] = 2
    scores = generator.standard_normal((6, 30)).astype(np.float32).astype(np.float64)
    qrels = {f"q{i}": {f"d{j}": int(g) for j, g in enumerate(row)} for i, row in enumerate(grades)}
    runs = {f"q{i}": {f"d{j}": float(s) for j, s in enumerate(row)} for i, row in enumerate(scores)}
    measures = {"map", "recip_rank", "ndcg", "ndcg_cut.10", "P.5", "recall.5"}
    theirs = pytrec_eval.RelevanceEvaluator(qrels, measures).evaluate(runs)
    extra = ("mrr", "ndcg", "ndcg@10", "precision@5", "recall@5")
    found = score_direction(MatrixScores(scores), judged(grades.astype(np.float32)), Queries(), extra=extra).record()
    pairs = {"map": "map", "mrr": "recip_rank", "ndcg": "ndcg", "ndcg@10": "ndcg_cut_10"}
    pairs |= {"precision@5": "P_5", "recall@5": "recall_5"}
    for ours, name in pairs.items():
        assert found.figure(ours) == pytest.approx(np.mean([one[name] for one in theirs.values()]), abs=1e-6)


def embedded(relevance, clips=12):
    generator = torch.Generator().manual_seed(0)
    vectors = {m: torch.randn(clips, 4, generator=generator) for m in ("audio", "visual")}
    marked = torch.rand(clips, 3, generator=generator) < 0.5
    marked[:, 0] |= ~marked.any(1)
    ids = tuple(map(str, range(clips)))
    labels = marked.int().argmax(1)
    return Embeddings(vectors, labels, ids, all_labels=marked, relevance=relevance)


@pytest.mark.parametrize("name", ["own", "labels", "labels-graded"])
def test_an_evaluation_says_its_relevance_and_has_the_usual_metrics_with_chance(name):
    found = evaluate(embedded(RULES[name])).record()
    assert found.relevance == name
    for direction in found.directions.values():
        assert direction.figure("ndcg@10") is not None
        assert {p[2] for p in direction.figures if p[:2] == ("chance_of", "metrics")} == {"mrr", "ndcg@10"}
        assert direction.by_class == {}
    if name == "own":
        direction = found.directions["audio-visual"]
        assert direction.figures["chance_of", "recall_at", "5"] == pytest.approx(5 / 12)
        assert direction.figure("mrr") == pytest.approx(direction.map)


def test_the_own_clip_is_taken_out_of_graded_rankings_too():
    whole = embedded(RULES["labels-graded"])
    found = evaluate(whole, gallery="without-partner", extra=("ndcg",))
    scores = torch.nn.functional.normalize(whole.vectors["audio"], dim=1)
    scores = (scores @ torch.nn.functional.normalize(whole.vectors["visual"], dim=1).T).numpy()
    marked = whole.all_labels.numpy()
    expected = []
    for row in range(12):
        others = np.arange(12) != row
        grades = np.array([(marked[row] & m).sum() / (marked[row] | m).sum() for m in marked])[others]
        if grades.any():
            expected.append(ndcg_score([grades], [scores[row, others]]))
    assert found["audio-visual"].figures["metrics", "ndcg"] == pytest.approx(np.mean(expected), abs=1e-5)


@pytest.mark.parametrize("gallery", ["full", "without-partner", "disjoint"])
@pytest.mark.parametrize("clips", [9, 10, 11, 19, 20, 21])
def test_ndcg_is_cut_off_at_ten_where_ten_items_are_ranked(gallery, clips):
    found = evaluate(embedded(RULES["labels"], clips), gallery=gallery)["audio-visual"]
    ranked = {"full": clips, "without-partner": clips - 1, "disjoint": clips // 2}[gallery]
    assert (("metrics", "ndcg@10") in found.figures) == (ranked >= 10)
    assert (("metrics", "ndcg") in found.figures) == (ranked < 10)


def test_a_gallery_without_the_own_clip_needs_it_to_be_relevant():
    alone = embedded(Judgments({str(n): {str((n + 1) % 12): 1.0} for n in range(12)}))
    assert evaluate(alone)["audio-visual"].gallery == 12
    with pytest.raises(InputError, match="the own clip of a query is not relevant"):
        evaluate(alone, gallery="without-partner")
