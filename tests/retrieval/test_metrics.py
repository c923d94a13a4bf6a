import itertools
from fractions import Fraction
from typing import get_args

import numpy as np
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

from aadml.retrieval import metrics, ties
from aadml.retrieval.first_ranks import FirstRanks
from aadml.retrieval.legacy_running_map import running_average_precision
from aadml.retrieval.ranking import Ranking, rank


def ap_by_loops(order, cutoff=None, normalizer="all"):
    """`order`: relevance of the ranked items."""
    cutoff = len(order) if cutoff is None else cutoff
    hits, total = 0, 0.0
    for place, relevant in enumerate(order[:cutoff], start=1):
        if relevant:
            hits += 1
            total += hits / place
    below = {"all": sum(order), "min(R,k)": min(sum(order), cutoff), "hits": hits}[normalizer]
    return total / below if below else 0.0


def running_by_loops(order):
    return sum(ap_by_loops(order, j, "hits") for j in range(1, len(order) + 1)) / len(order)


def orders_of_ties(scores, relevant):
    """Every order in which the items may be ranked, ties in any order."""
    for order in itertools.permutations(range(len(scores))):
        if all(scores[a] >= scores[b] for a, b in itertools.pairwise(order)):
            yield [bool(relevant[i]) for i in order]


@st.composite
def tied_rankings(draw):
    count = draw(st.integers(1, 6))
    scores = draw(st.lists(st.integers(-1, 2), min_size=count, max_size=count))
    relevant = draw(st.lists(st.booleans(), min_size=count, max_size=count).filter(any))
    return scores, relevant


def ranked(scores, relevant):
    return rank(np.asarray([scores], dtype=np.float32), np.asarray([relevant]))


@settings(max_examples=120, deadline=None)
@given(tied_rankings())
def test_every_metric_is_its_mean_over_all_orders_of_ties_and_the_bounds_enclose_them(case):
    found, orders = ranked(*case), list(orders_of_ties(*case))
    cutoffs = np.arange(1, len(case[0]) + 1)

    def mean(metric):
        return pytest.approx(sum(metric(order) for order in orders) / len(orders), abs=1e-12)

    values = [ap_by_loops(order) for order in orders]
    low, high = metrics.average_precision_bounds(found)
    assert metrics.average_precision(found)[0] == mean(ap_by_loops)
    assert low[0] == pytest.approx(min(values), abs=1e-12)
    assert high[0] == pytest.approx(max(values), abs=1e-12)
    assert running_average_precision(found)[0] == mean(running_by_loops)
    assert metrics.best_rank(found)[0] == mean(lambda order: order.index(True) + 1)
    hits, rate = metrics.hits_at(found, cutoffs), FirstRanks.of(found).within(cutoffs)
    for i, k in enumerate(cutoffs):
        assert hits[0, i] == mean(lambda order, k=k: sum(order[:k]))
        assert rate[0, i] == mean(lambda order, k=k: any(order[:k]))
        for normalizer in get_args(metrics.Normalizer):
            expected = mean(lambda order, k=k, n=normalizer: ap_by_loops(order, k, n))
            assert metrics.average_precision_at(found, int(k), normalizer)[0] == expected


def many(seed, queries=40, items=120, levels=None, share=0.2):
    generator = np.random.default_rng(seed)
    scores = generator.standard_normal((queries, items)).astype(np.float32)
    if levels:
        scores = np.round(scores * levels).astype(np.float32)
    relevant = generator.random((queries, items)) < share
    relevant[:, 0] = True
    return scores, relevant


def orders(scores, relevant):
    return np.take_along_axis(relevant, np.argsort(-scores, axis=1, kind="stable"), axis=1)


def test_without_ties_metrics_are_their_definitions_for_many_queries_at_once():
    scores, relevant = many(0)
    found, ordered = rank(scores, relevant), orders(scores, relevant).tolist()
    assert np.allclose(metrics.average_precision(found), [ap_by_loops(o) for o in ordered], atol=1e-14)
    assert np.allclose(running_average_precision(found), [running_by_loops(o) for o in ordered], atol=1e-13)
    for normalizer in get_args(metrics.Normalizer):
        expected = [ap_by_loops(o, 10, normalizer) for o in ordered]
        assert np.allclose(metrics.average_precision_at(found, 10, normalizer), expected, atol=1e-14)
    expected = [ap_by_loops(o, sum(o)) for o in ordered]
    assert np.allclose(metrics.average_precision_at(found, found.relevant), expected, atol=1e-14)
    assert (metrics.hits_at(found, np.array([1, 7, 120])) == [[sum(o[:k]) for k in (1, 7, 120)] for o in ordered]).all()
    assert (metrics.best_rank(found) == [o.index(True) + 1 for o in ordered]).all()


def test_with_large_groups_of_ties_metrics_are_the_mean_over_many_random_orders():
    scores, relevant = many(1, queries=6, items=60, levels=1)
    found, generator = rank(scores, relevant), np.random.default_rng(2)
    samples = [orders(np.asarray(scores + generator.random(scores.shape) * 0.5), relevant) for _ in range(3000)]
    cutoffs = np.array([3, 20])
    for values, sampled in (
        (metrics.average_precision(found), [[ap_by_loops(row) for row in s.tolist()] for s in samples]),
        (metrics.hits_at(found, cutoffs)[:, 1], [s[:, :20].sum(1) for s in samples]),
        (FirstRanks.of(found).within(cutoffs)[:, 0], [s[:, :3].any(1) for s in samples]),
        (
            metrics.average_precision_at(found, 20, "hits"),
            [[ap_by_loops(r, 20, "hits") for r in s.tolist()] for s in samples],
        ),
    ):
        sampled = np.asarray(sampled, dtype=float)
        error = sampled.std(0) / np.sqrt(len(sampled))
        assert (np.abs(values - sampled.mean(0)) < 5 * error + 1e-12).all()


@pytest.mark.parametrize("shift", [0.0, -10.0, 10.0])
def test_average_precision_is_scikit_learns_where_nothing_ties_whatever_the_sign_of_scores(shift):
    scores, relevant = many(3)
    scores = scores + np.float32(shift)
    found = metrics.average_precision(rank(scores, relevant))
    untied = [len(np.unique(row)) == len(row) for row in scores]
    assert sum(untied) > 10
    for value, row, own, alone in zip(found, scores, relevant, untied, strict=True):
        if alone:
            assert value == pytest.approx(average_precision_score(own, row), abs=1e-12)


def test_metrics_are_those_of_trec_eval_where_nothing_ties():
    scores, relevant = many(4)
    names = [f"d{j:03}" for j in range(scores.shape[1])]
    truth = {f"q{i}": {n: int(r) for n, r in zip(names, row, strict=True)} for i, row in enumerate(relevant)}
    run = {f"q{i}": {n: float(v) for n, v in zip(names, row, strict=True)} for i, row in enumerate(scores)}
    measures = {"map", "P.5,10", "recall.5,10", "map_cut.10", "success.5,10", "recip_rank", "Rprec"}
    expected = pytrec_eval.RelevanceEvaluator(truth, measures).evaluate(run)
    found, k = rank(scores, relevant), np.array([5, 10])
    hits = metrics.hits_at(found, k)
    columns = {
        "map": metrics.average_precision(found),
        "P_5": hits[:, 0] / 5,
        "P_10": hits[:, 1] / 10,
        "recall_10": hits[:, 1] / found.relevant,
        "map_cut_10": metrics.average_precision_at(found, 10),
        "success_5": FirstRanks.of(found).within(k)[:, 0],
        "recip_rank": 1 / metrics.best_rank(found),
    }
    for name, values in columns.items():
        assert np.allclose(values, [expected[f"q{i}"][name] for i in range(len(scores))], atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 40), st.data())
def test_a_constant_scorer_gets_exactly_the_chance_level_whatever_the_order_of_the_gallery(items, data):
    relevant = data.draw(st.lists(st.booleans(), min_size=items, max_size=items).filter(any))
    expected = ties.chance(np.array([sum(relevant)]), items)[0]
    n, r = items, sum(relevant)
    harmonic = sum(Fraction(1, i) for i in range(1, n + 1))
    step = Fraction(r - 1, n - 1) if n > 1 else Fraction(0)
    assert expected == pytest.approx(float(step + (1 - step) * harmonic / n), abs=1e-13)
    for order in (relevant, sorted(relevant), sorted(relevant, reverse=True)):
        assert metrics.average_precision(ranked([0.25] * items, order))[0] == expected


def test_a_gallery_sorted_by_class_changes_nothing():
    scores, relevant = many(5, levels=2)
    by_class = np.argsort(~relevant[0], kind="stable")
    one, other = rank(scores, relevant), rank(scores[:, by_class], relevant[:, by_class])
    assert np.array_equal(metrics.average_precision(one), metrics.average_precision(other))
    assert np.array_equal(running_average_precision(one), running_average_precision(other))


def test_a_tied_pair_far_down_a_long_ranking_keeps_its_digits():
    t, r, n, m = 10**6, 10**5, 3, 2
    exact = sum(Fraction(m, n) * (r + 1 + Fraction((i - 1) * (m - 1), n - 1)) / (t + i) for i in range(1, n + 1))
    found = ties.precision_sum(*(np.array([value]) for value in (t, r, n, m, n)))[0]
    assert found == pytest.approx(float(exact), rel=1e-13)


def test_metrics_of_the_first_k_items_use_no_memory_for_the_rest_of_a_large_gallery():
    tied = Ranking.by_chance(np.array([3]), 10**12)
    assert metrics.hits_at(tied, np.array([5, 10]))[0].tolist() == pytest.approx([15e-12, 30e-12])
    assert metrics.ndcg(tied, cutoff=10)[0] < 1e-10


def test_with_one_relevant_item_average_precision_at_k_is_the_reciprocal_rank_within_k():
    scores, _ = many(6)
    relevant = np.zeros_like(scores, dtype=bool)
    relevant[:, 17] = True
    found = rank(scores, relevant)
    place = metrics.best_rank(found)
    assert np.allclose(metrics.average_precision_at(found, 10), np.where(place <= 10, 1 / place, 0))
