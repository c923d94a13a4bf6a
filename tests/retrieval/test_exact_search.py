"""Exact search gives what scoring everything gives, however the numbers lie."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from aadml.feature_extraction.ground.errors import InputError
from aadml.retrieval.exact_search import Gallery
from aadml.retrieval.scores import SIMILARITIES, pair_scores

KINDS = ("normal", "ties", "posteriors", "near", "shifted", "tiny", "huge", "zeros")


def drawn(kind, count, dimension, seed):
    generator = np.random.default_rng(seed)
    values = generator.normal(size=(count, dimension))
    if kind == "ties":
        values = generator.integers(-1, 2, (count, dimension)).astype(float)
    if kind == "posteriors":
        values = np.exp(4 * values) / np.exp(4 * values).sum(1, keepdims=True)
    if kind == "near":
        values = 1 + 1e-6 * values
    if kind == "shifted":
        values = 100 + values
    if kind == "zeros":
        values[::3] = 0
    return torch.tensor(values * {"tiny": 1e-30, "huge": 1e30}.get(kind, 1), dtype=torch.float32)


@given(
    similarity=st.sampled_from(list(SIMILARITIES)),
    kind=st.sampled_from(KINDS),
    seed=st.integers(0, 10**6),
    k=st.integers(1, 30),
    queries=st.integers(1, 2),
    share=st.sampled_from([None, 0.1, 0.7]),
)
def test_it_finds_what_scoring_everything_finds(similarity, kind, seed, k, queries, share):
    asked, vectors = drawn(kind, queries, 5, seed + 1), drawn(kind, 80, 5, seed)
    gallery = Gallery(vectors, similarity)
    rows = None if share is None else np.flatnonzero(np.random.default_rng(seed).random(80) < share)
    found, scores = (gallery if rows is None else gallery.only(rows)).best(asked, k)
    found = found if rows is None else rows[found]
    among = np.arange(80) if rows is None else rows
    every = gallery.scores(asked)[among]
    wanted = np.argsort(-every, kind="stable")[:k]
    largest = np.abs(every).max(initial=0)
    np.testing.assert_allclose(scores, every[wanted], rtol=1e-6, atol=1e-6 * largest)
    if kind not in ("near", "shifted"):  # there scores differ by less than float32 tells apart
        assert sorted(scores, reverse=True) == list(scores)
        same = np.isclose(every[wanted], scores, rtol=1e-9, atol=1e-12 * largest) & (found == among[wanted])
        assert same.all() or np.diff(np.sort(every)).min(initial=np.inf) < 1e-6 * largest


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_scores_are_those_of_an_evaluation_in_the_unit_of_the_similarity(similarity):
    asked, vectors = drawn("normal", 7, 6, 0), drawn("normal", 50, 6, 1)
    for one in asked:
        wanted = pair_scores(one.expand_as(vectors), vectors, similarity)
        assert Gallery(vectors, similarity).scores(one[None]).tolist() == wanted.tolist()


def test_the_units_are_the_definitions():
    a, b = drawn("normal", 1, 6, 0), drawn("normal", 1, 6, 1)
    x, y = a[0].double().numpy(), b[0].double().numpy()
    wanted = {
        "cosine": x @ y / np.linalg.norm(x) / np.linalg.norm(y),
        "dot": x @ y,
        "euclidean": -((x - y) ** 2).sum(),
        "hamming": 6 - 2 * ((x > 0) != (y > 0)).sum(),
    }
    for name, score in wanted.items():
        assert Gallery(b, name).scores(a)[0] == pytest.approx(score, rel=1e-6)


def test_equal_scores_stand_in_the_order_of_the_items():
    vectors = torch.ones(40, 3)
    vectors[7] = torch.tensor([2.0, 2.0, 2.1])
    found, scores = Gallery(vectors, "cosine").best(torch.ones(1, 3), 5)
    assert list(found) == [0, 1, 2, 3, 4]
    assert len(set(scores)) == 1


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("kind", KINDS)
def test_many_queries_find_what_each_finds_among_the_items_that_are_not_hidden(kind, similarity, monkeypatch):
    monkeypatch.setattr("aadml.retrieval.exact_search._BLOCK", 7)  # blocks of seven queries
    gallery = Gallery(drawn(kind, 900, 6, 0), similarity)
    asked = drawn(kind, 40, 6, 1).reshape(20, 2, 6)
    hidden = np.random.default_rng(2).random((20, 900)) < 0.4
    hidden[3] = True
    hidden[4, 5:] = True
    for k in (1, 9):
        together = list(gallery.best_of_each(asked, k, lambda query: hidden[query]))
        assert len(together) == 20
        for query, without, (found, scores) in zip(asked, hidden, together, strict=True):
            rows = np.flatnonzero(~without)
            places, wanted = gallery.only(rows).best(query, k)
            assert (found.tolist(), scores.tolist()) == (rows[places].tolist(), wanted.tolist())


@pytest.mark.parametrize("kind", [*KINDS, "directions"])
def test_products_in_bfloat16_find_what_products_in_float32_find(kind, monkeypatch):
    monkeypatch.setattr("aadml.retrieval.exact_search._BLOCK", 4)
    monkeypatch.setattr(Gallery, "_may_be_rounded", True)
    again = []
    float32 = Gallery._products
    monkeypatch.setattr(Gallery, "_products", lambda self, v, *a: again.append(len(v)) or float32(self, v, *a))
    vectors, asked = drawn("normal" if kind == "directions" else kind, 5050, 32, 0), drawn("normal", 40, 32, 1)
    vectors = vectors + (torch.arange(5050) % 50)[:, None] if kind == "directions" else vectors
    gallery = Gallery(vectors, "cosine")
    hidden = np.random.default_rng(2).random((40, 5050)) < 0.4
    for k, left_out in ((1, None), (20, None), (20, lambda query: hidden[query]), (3000, None)):
        again.clear()
        many = list(gallery.best_of_each(asked[:, None], k, left_out))
        assert len(again) == 10  # one call for each block, for the queries that bfloat16 does not decide
        if k < 3000 and kind in ("normal", "directions", "near"):
            assert sum(again) == {"normal": 0, "near": 40}.get(kind, sum(again))
        for number in range(0, 40, 3):
            rows = np.arange(5050) if left_out is None else np.flatnonzero(~hidden[number])
            places, scores = gallery.only(rows).best(asked[number : number + 1], k)
            assert many[number][0].tolist() == rows[places].tolist()
            assert many[number][1].tolist() == scores.tolist()


def test_bfloat16_is_left_after_a_block_that_it_does_not_decide(monkeypatch):
    monkeypatch.setattr("aadml.retrieval.exact_search._BLOCK", 4)
    monkeypatch.setattr(Gallery, "_may_be_rounded", True)
    given = []
    candidates = Gallery._candidates
    monkeypatch.setattr(
        Gallery, "_candidates", lambda self, *a: given.append(a[-1] is not None) or candidates(self, *a)
    )
    for kind, wanted in (("normal", [True] * 10), ("near", [True] + [False] * 9)):
        given.clear()
        list(Gallery(drawn(kind, 5050, 32, 0), "cosine").best_of_each(drawn("normal", 40, 32, 1)[:, None], 5))
        assert given == wanted


def test_results_of_a_block_are_limited(monkeypatch):
    monkeypatch.setattr("aadml.retrieval.exact_search._PAIRS", 300)
    gallery, asked, sizes = Gallery(drawn("normal", 100, 6, 0), "dot"), drawn("normal", 9, 6, 1)[:, None], []
    candidates = Gallery._candidates
    monkeypatch.setattr(Gallery, "_candidates", lambda self, q, *a: sizes.append(len(q)) or candidates(self, q, *a))
    together = list(gallery.best_of_each(asked, 100))
    assert sizes == [3, 3, 3]
    for query, (rows, scores) in zip(asked, together, strict=True):
        assert rows.tolist() == np.argsort(-gallery.scores(query), kind="stable").tolist()
        assert scores.tolist() == gallery.scores(query)[rows].tolist()


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("shown", [slice(0, 5), slice(970, None), slice(3, None, 15)])
def test_hidden_items_are_never_found(similarity, shown):
    hidden = np.ones(1000, dtype=bool)
    hidden[shown] = False
    vectors = drawn("normal", 1000, 16, 0)
    for k in (1, 7):
        ((found, _),) = Gallery(vectors, similarity).best_of_each(vectors[1:2, None], k, lambda query: hidden)
        assert len(found) == min(k, (~hidden).sum())
        assert not hidden[found].any()


def test_an_item_in_every_group_is_found_where_best_items_lie_together():
    vectors = drawn("normal", 5000, 4, 0)
    vectors[1000:1400] += 20
    vectors[1400:1500] = vectors[1399]
    gallery, asked = Gallery(vectors, "dot"), torch.ones(1, 4)
    for k in (1, 10, 100, 450):
        found, _ = gallery.best(asked, k)
        assert found.tolist() == np.argsort(-gallery.scores(asked), kind="stable")[:k].tolist()


def test_queries_that_are_not_finite_are_refused():
    with pytest.raises(InputError, match="NaN or infinity"):
        Gallery(torch.ones(2, 3), "dot").best(torch.tensor([[1.0, torch.nan, 0.0]]), 1)


def test_several_queries_are_averaged_and_a_filter_may_leave_nothing():
    vectors, asked = drawn("normal", 20, 4, 0), drawn("normal", 2, 4, 1)
    gallery = Gallery(vectors, "dot")
    mean = (gallery.scores(asked[:1]) + gallery.scores(asked[1:])) / 2
    np.testing.assert_allclose(gallery.scores(asked), mean, rtol=1e-6)
    found, scores = gallery.only(np.zeros(0, dtype=np.int64)).best(asked, 3)
    assert len(found) == len(scores) == 0


@pytest.mark.parametrize("similarity", ["cosine", "dot", "euclidean"])
@pytest.mark.parametrize("kind", ["near", "shifted"])
def test_scores_that_float32_cannot_tell_apart_are_ranked_in_float64(similarity, kind):
    gallery = Gallery(drawn(kind, 900, 64, 0), similarity)
    for asked in drawn(kind, 20, 64, 1).split(1):
        every = gallery.scores(asked)
        found, scores = gallery.best(asked, 5)
        assert found.tolist() == np.argsort(-every, kind="stable")[:5].tolist()
        assert scores.tolist() == every[found].tolist()


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_items_without_direction_are_found_in_their_order(similarity):
    gallery = Gallery(torch.zeros(5, 3), similarity)
    assert gallery.best(torch.ones(1, 3), 2)[0].tolist() == [0, 1]
    assert list(gallery.best_of_each(torch.ones(0, 1, 3), 2)) == []


def test_sequences_are_refused():
    with pytest.raises(InputError, match="one vector per clip"):
        Gallery(torch.ones(2, 3), "frame-word")
