"""What every similarity and every metric must hold, present and future; the exceptions are named with their reason."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from aadml.comparison.relevance import Grouped
from aadml.feature_extraction.ground.options import REQUIRED, schema
from aadml.retrieval import METRICS
from aadml.retrieval.directions import score_direction
from aadml.retrieval.metric_names import OTHER_GALLERIES, SMALLER_IS_BETTER
from aadml.retrieval.scores import SIMILARITIES, MatrixScores, score_source

SIMILAR = pytest.mark.parametrize("similarity", sorted(SIMILARITIES))
OF_ANOTHER_GALLERY = dict.fromkeys(OTHER_GALLERIES, "asks who the partner is: tests/retrieval/test_galleries.py")
METRIC = pytest.mark.parametrize("metric", sorted(set(METRICS) - set(OF_ANOTHER_GALLERY)))
few = settings(max_examples=15)
seeds = st.integers(0, 2**32 - 1)

NOT_ITS_OWN_NEAREST = {"dot": "a longer vector in about the same direction has a larger product"}
KNOWS_SIGNS_ALONE = {"hamming": "a bit is x > 0"}

RANKS = dict.fromkeys(SMALLER_IS_BETTER, "a rank begins with 1, and the smaller it is the better")
MEDIANS = {"median-rank": "a median of queries is not a mean of them"}
OVER_THE_CUTOFF = {"precision": "one relevant item among the first two is half of them"}


def vectors(seed, count, dimension=6):
    return torch.randn(count, dimension, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def whole(queries, gallery, similarity):
    source = replace(score_source(queries, gallery, similarity), precision=np.float64)
    assert source.shape == (len(queries), len(gallery))
    return source.block(0, len(queries))


@SIMILAR
@few
@given(seed=seeds)
def test_a_score_is_of_two_vectors_alone(similarity, seed):
    """Whatever else is scored at the same time may change the scale, never who is nearer."""
    queries, gallery = vectors(seed, 5), vectors(seed + 1, 9)
    scores = whole(queries, gallery, similarity)
    for i in range(5):
        alone = whole(queries[i : i + 1], gallery[::2], similarity)[0]
        assert np.array_equal(np.argsort(alone, kind="stable"), np.argsort(scores[i, ::2], kind="stable"))


@SIMILAR
@few
@given(seed=seeds)
def test_permuted_items_have_permuted_scores(similarity, seed):
    queries, gallery = vectors(seed, 5), vectors(seed + 1, 9)
    rows, columns = np.random.default_rng(seed).permutation(5), np.random.default_rng(seed).permutation(9)
    expected = whole(queries, gallery, similarity)[np.ix_(rows, columns)]
    np.testing.assert_allclose(whole(queries[rows], gallery[columns], similarity), expected, rtol=1e-12, atol=1e-14)


@SIMILAR
@few
@given(seed=seeds)
def test_either_side_may_ask(similarity, seed):
    one, other = vectors(seed, 5), vectors(seed + 1, 9)
    forth, back = whole(one, other, similarity), whole(other, one, similarity).T
    ratio = np.abs(forth).max() / np.abs(back).max()
    np.testing.assert_allclose(forth, back * ratio, rtol=1e-9, atol=1e-12)


@SIMILAR
@few
@given(seed=seeds)
def test_nothing_is_nearer_to_an_item_than_its_copy(similarity, seed):
    if similarity in NOT_ITS_OWN_NEAREST:
        return
    gallery = vectors(seed, 9)
    scores = whole(gallery, gallery, similarity)
    assert (scores.diagonal() >= scores.max(1) - 1e-12).all()


@SIMILAR
@few
@given(seed=seeds)
def test_an_item_and_its_opposite_are_told_apart(similarity, seed):
    gallery = vectors(seed, 4)
    scores = whole(gallery, torch.cat([gallery, -gallery]), similarity)
    assert (scores.diagonal() > scores[:, 4:].diagonal()).all()


@SIMILAR
@pytest.mark.parametrize("scale", [1e-20, 1.0, 1e20])
def test_vectors_of_any_length_have_finite_scores_in_the_same_order(similarity, scale):
    queries, gallery = vectors(1, 5), vectors(2, 9)
    plain, scaled = whole(queries, gallery, similarity), whole(queries * scale, gallery * scale, similarity)
    assert np.isfinite(scaled).all()
    assert np.array_equal(np.argsort(plain, axis=1, kind="stable"), np.argsort(scaled, axis=1, kind="stable"))


@SIMILAR
def test_zero_vectors_and_copies_are_no_error(similarity):
    scores = whole(torch.zeros(2, 3), torch.zeros(4, 3), similarity)
    assert np.isfinite(scores).all()
    assert len(np.unique(scores)) == 1


@SIMILAR
def test_more_than_signs_counts(similarity):
    gallery = torch.tensor([[1.0, 0.1], [0.1, 1.0]], dtype=torch.float64)
    told_apart = len(np.unique(whole(gallery[:1], gallery, similarity))) == 2
    assert told_apart is (similarity not in KNOWS_SIGNS_ALONE)


@st.composite
def rankings(draw, most=12):
    random = np.random.default_rng(draw(seeds))
    queries, items = draw(st.integers(1, 5)), draw(st.integers(2, most))
    scores = random.integers(-3, 4, (queries, items)).astype(np.float64)
    gallery = random.integers(0, 3, items)
    return scores, random.choice(gallery, queries), gallery


def figures(scores, queries, gallery, metric):
    cutoff = schema(METRICS[metric]).get("cutoff")
    plain = [] if cutoff is not None and cutoff.default is REQUIRED else [metric]
    names = plain if cutoff is None else [*plain, f"{metric}@1", f"{metric}@2"]
    found = score_direction(
        MatrixScores(np.asarray(scores)), Grouped(queries, gallery), extra=names, cutoffs=(1,)
    ).record()
    return {name: found.figure(name) for name in names}


def assert_same(one, other):
    assert one.keys() == other.keys()
    assert list(one.values()) == pytest.approx(list(other.values()), abs=1e-12)


@METRIC
@few
@given(case=rankings(), seed=seeds)
def test_a_figure_is_a_share_or_a_rank_and_knows_no_order_of_queries_or_of_the_gallery(metric, case, seed):
    scores, queries, gallery = case
    found = figures(scores, queries, gallery, metric)
    low, high = (1, len(gallery)) if metric in RANKS else (0, 1)
    assert all(low - 1e-12 <= value <= high + 1e-12 for value in found.values())
    random = np.random.default_rng(seed)
    rows, columns = random.permutation(len(queries)), random.permutation(len(gallery))
    assert_same(figures(scores[np.ix_(rows, columns)], queries[rows], gallery[columns], metric), found)


@METRIC
@few
@given(case=rankings())
def test_only_the_order_of_scores_counts(metric, case):
    scores, queries, gallery = case
    assert_same(figures(np.exp2(scores), queries, gallery, metric), figures(scores, queries, gallery, metric))


@METRIC
@few
@given(case=rankings(most=4))
def test_ties_count_as_the_mean_over_all_orders_of_the_tied(metric, case):
    if metric in MEDIANS:
        return
    scores, queries, gallery = case
    orders = [np.array(order) / 10 for order in itertools.permutations(range(len(gallery)))]
    all_orders = np.concatenate([scores + order for order in orders])  # a figure is the mean over queries, see below
    mean = figures(all_orders, np.tile(queries, len(orders)), gallery, metric)
    assert_same(figures(scores, queries, gallery, metric), mean)


@METRIC
@few
@given(case=rankings())
def test_better_rankings_score_no_less_and_labels_have_no_names(metric, case):
    scores, queries, gallery = case
    found = figures(scores, queries, gallery, metric)
    perfect = figures(scores + 10 * (queries[:, None] == gallery), queries, gallery, metric)
    sign = -1 if metric in RANKS else 1
    assert all(sign * perfect[path] >= sign * value - 1e-12 for path, value in found.items())
    assert_same(figures(scores, 7 - queries, 7 - gallery, metric), found)


@METRIC
def test_one_relevant_item_on_top_is_a_whole_and_the_mean_is_over_queries(metric):
    top = figures([[3.0, 2.0, 1.0]], np.array([1]), np.array([1, 0, 0]), metric)
    last = figures([[1.0, 2.0, 3.0]], np.array([1]), np.array([1, 0, 0]), metric)
    both = figures([[3.0, 2.0, 1.0], [1.0, 2.0, 3.0]], np.array([1, 1]), np.array([1, 0, 0]), metric)
    whole_of = {f"{name}@2": 0.5 for name in OVER_THE_CUTOFF}
    assert all(value == pytest.approx(whole_of.get(path, 1.0)) for path, value in top.items())
    assert any(last[path] != pytest.approx(top[path]) for path in top)
    assert all(both[path] == pytest.approx((top[path] + last[path]) / 2) for path in both)


def test_every_exception_names_a_similarity_or_a_metric():
    assert (NOT_ITS_OWN_NEAREST | KNOWS_SIGNS_ALONE).keys() <= SIMILARITIES.keys()
    assert (RANKS | MEDIANS | OVER_THE_CUTOFF | OF_ANOTHER_GALLERY).keys() <= METRICS.keys()
