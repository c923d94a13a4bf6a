"""Exact search gives what scoring everything gives, however the numbers lie."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from aadml.feature_extraction.ground.errors import InputError
from aadml.retrieval.scores import SIMILARITIES, score_source, unit_of_scores
from aadml.search.exact_search import Gallery

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
    found, scores = gallery.best(asked, k, rows)
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
    together = score_source(asked, vectors, similarity).block(0, 7) * unit_of_scores(asked, vectors, similarity)
    alone = np.stack([Gallery(vectors, similarity).scores(one[None]) for one in asked])
    np.testing.assert_allclose(alone, together, rtol=1e-6, atol=1e-6)


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


def test_several_queries_are_averaged_and_a_filter_may_leave_nothing():
    vectors, asked = drawn("normal", 20, 4, 0), drawn("normal", 2, 4, 1)
    gallery = Gallery(vectors, "dot")
    mean = (gallery.scores(asked[:1]) + gallery.scores(asked[1:])) / 2
    np.testing.assert_allclose(gallery.scores(asked), mean, rtol=1e-6)
    found, scores = gallery.best(asked, 3, np.zeros(0, dtype=np.int64))
    assert len(found) == len(scores) == 0


def test_sequences_are_refused():
    with pytest.raises(InputError, match="one vector a clip"):
        Gallery(torch.ones(2, 3), "frame-word")
