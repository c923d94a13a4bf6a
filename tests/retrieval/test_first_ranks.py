import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aadml.comparison.relevance import Grouped
from aadml.retrieval.directions import score_direction
from aadml.retrieval.first_ranks import FirstRanks
from aadml.retrieval.ranking import Ranking, rank
from aadml.retrieval.scores import MatrixScores


@st.composite
def tables(draw):
    """Scores with many ties, and relevance with something relevant in each row."""
    items, queries = draw(st.integers(1, 5)), draw(st.integers(1, 3))
    scores = draw(
        st.lists(st.lists(st.integers(0, 2), min_size=items, max_size=items), min_size=queries, max_size=queries)
    )
    row = st.lists(st.booleans(), min_size=items, max_size=items).filter(any)
    return np.array(scores, np.float32), np.array(draw(st.lists(row, min_size=queries, max_size=queries)))


def first_ranks_by_loops(scores, relevant):
    """The rank of the first relevant item in every order of the ties, each query as often as every other."""
    found = []
    for row, own in zip(scores, relevant, strict=True):
        orders = [
            order
            for order in itertools.permutations(range(len(row)))
            if all(row[a] >= row[b] for a, b in itertools.pairwise(order))
        ]
        found.append([next(i for i, item in enumerate(order, 1) if own[item]) for order in orders])
    common = np.lcm.reduce([len(one) for one in found])
    return np.array([np.repeat(one, common // len(one)) for one in found])


@settings(max_examples=60, deadline=None)
@given(case=tables())
def test_means_and_medians_are_those_over_queries_and_all_orders_of_ties(case):
    ranks, found = first_ranks_by_loops(*case), FirstRanks.of(rank(*case))
    np.testing.assert_allclose(found.expected, ranks.mean(axis=1))
    assert found.median == np.median(ranks)
    for place in range(1, case[0].shape[1] + 1):
        assert found.within(np.array([place])).mean() == pytest.approx((ranks <= place).mean())


@settings(max_examples=40, deadline=None)
@given(case=tables())
def test_chance_is_that_of_a_random_order(case):
    scores, relevant = case
    items = scores.shape[1]
    blind = first_ranks_by_loops(np.zeros_like(scores), relevant)
    found = FirstRanks.of(Ranking.by_chance(relevant.sum(axis=1), items))
    np.testing.assert_allclose(found.expected, blind.mean(axis=1))
    assert found.median == np.median(blind)


def test_a_random_scorer_has_chance_of_every_rank_and_a_constant_one_has_it_exactly():
    generator = np.random.default_rng(0)
    groups = generator.integers(4, size=400)
    places = (("median_rank",), ("mean_rank",), ("running_map",))
    blind = (
        score_direction(MatrixScores(np.zeros((400, 400))), Grouped(groups, groups), extra=("running",))
        .record()
        .figures
    )
    drawn = score_direction(
        MatrixScores(generator.random((400, 400))), Grouped(groups, groups), extra=("running",)
    ).record()
    for place in places:
        assert blind[place] == pytest.approx(blind["chance_of", *place], rel=1e-9)
        assert drawn.figures[place] == pytest.approx(blind["chance_of", *place], rel=0.25)
    assert blind["chance_of", "median_rank"] < blind["chance_of", "mean_rank"]  # ranks of a random order are skewed
