"""Influence of clips on MAP: the derivative of a weighted MAP in loops, and the variance of a bootstrap of clips."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aadml.comparison.relevance import Grouped
from aadml.retrieval.directions import Queries, Units, score_direction
from aadml.retrieval.influence import gallery_influence
from aadml.retrieval.scores import MatrixScores


def weighted_average_precision(scores, hits, weights):
    """AP of one query with weighted items: an item counts itself whole, and other items of its score by half."""
    total = found = 0.0
    for r in np.flatnonzero(hits):
        above = relevant = 0.0
        for j, (score, hit) in enumerate(zip(scores, hits, strict=True)):
            share = 1.0 if score > scores[r] or j == r else 0.5 if score == scores[r] else 0.0
            above += share * weights[j]
            relevant += share * hit * weights[j]
        total += weights[r] * relevant / above
        found += weights[r]
    return total / found


def drawn(seed, queries, items, levels):
    generator = np.random.default_rng(seed)
    scores = generator.integers(0, levels, (queries, items)) / levels
    return scores, generator.integers(0, 3, queries), generator.integers(0, 3, items), generator


@given(
    seed=st.integers(0, 9999), queries=st.integers(1, 5), items=st.integers(1, 9), levels=st.sampled_from([3, 10**6])
)
def test_it_is_the_derivative_of_the_sum_of_weighted_average_precisions(seed, queries, items, levels):
    scores, asked, classes, generator = drawn(seed, queries, items, levels)
    own = generator.integers(-1, 3, queries)
    clips = generator.integers(0, 3, items)  # several items of a clip, such as its captions
    found = gallery_influence(MatrixScores(scores), Grouped(asked, classes), (own, clips))
    expected, step = np.zeros(items), 1e-5
    for i in range(queries):
        hits = classes == asked[i]
        for j in range(items) if hits.any() else ():
            if clips[j] == own[i]:
                continue
            sides = []
            for sign in (1, -1):
                weights = np.ones(items)
                weights[j] += sign * step
                sides.append(weighted_average_precision(scores[i], hits, weights))
            expected[j] += (sides[0] - sides[1]) / (2 * step)
    assert found == pytest.approx(expected, abs=1e-8)


@given(seed=st.integers(0, 9999), levels=st.sampled_from([3, 10**6]))
def test_without_the_own_clip_it_is_that_of_a_gallery_without_the_clip(seed, levels):
    scores, asked, classes, _ = drawn(seed, 4, 8, levels)
    own = np.array([np.flatnonzero(classes == a)[0] if (classes == a).any() else 0 for a in asked])
    classes = classes.copy()
    classes[own] = asked
    found = gallery_influence(MatrixScores(scores), Grouped(asked, classes), (own, np.arange(8)), excluded=own)
    expected = np.zeros(8)
    for i in range(4):
        others = np.delete(np.arange(8), own[i])
        if (classes[others] == asked[i]).any():
            part = MatrixScores(scores[i : i + 1, others])
            expected[others] += gallery_influence(part, Grouped(asked[i : i + 1], classes[others]))
    assert found == pytest.approx(expected, abs=1e-12)


def test_a_sample_of_the_queries_stands_for_all(monkeypatch):
    scores, asked, classes, generator = drawn(5, 900, 40, 10**6)
    source, relevant = MatrixScores(scores + generator.random(40)), Grouped(asked, classes)
    whole = gallery_influence(source, relevant)
    monkeypatch.setattr("aadml.retrieval.influence.QUERIES", 450)
    sampled = gallery_influence(source, relevant)
    assert np.corrcoef(whole, sampled)[0, 1] > 0.95
    assert np.abs(sampled).sum() == pytest.approx(np.abs(whole).sum(), rel=0.15)


def result(scores, labels):
    count = len(labels)
    units = Units(tuple(map(str, range(count))), np.arange(count), np.arange(count), (np.arange(count),) * 2)
    return score_direction(MatrixScores(scores), Grouped(labels, labels), Queries(units=units))


def test_the_error_is_that_of_a_bootstrap_that_draws_clips_as_queries_and_items():
    generator = np.random.default_rng(3)
    labels = generator.integers(0, 5, 120)
    points = np.eye(5)[labels] + generator.normal(0, 1.0, (120, 5)) + generator.normal(0, 0.7, (120, 1))
    scores = points @ (np.eye(5)[labels] + generator.normal(0, 0.8, (120, 5))).T
    values = result(scores, labels).unit_values
    drawn_maps = []
    for _ in range(300):
        weights = np.bincount(generator.integers(0, 120, 120), minlength=120).astype(float)
        maps = []
        for i in np.flatnonzero(weights):
            own = weights.copy()
            own[i] = 1  # copies of a clip do not find each other
            order = np.argsort(-scores[i])
            order = order[own[order] > 0]
            hit, weight = labels[order] == labels[i], own[order]
            precision = np.cumsum(weight * hit) / np.cumsum(weight)
            maps.append((weight * hit * precision).sum() / (weight * hit).sum())
        drawn_maps.append(np.average(maps, weights=weights[weights > 0]))
    assert values.std(ddof=1) / np.sqrt(120) == pytest.approx(np.std(drawn_maps), rel=0.15)
    assert values.mean() == pytest.approx(result(scores, labels).map)


def test_clusters_have_the_sum_of_the_influence_of_their_clips():
    generator = np.random.default_rng(4)
    labels, cluster = generator.integers(0, 3, 30), generator.integers(0, 6, 30)
    scores = generator.random((30, 30))
    clips = result(scores, labels)
    units = Units(tuple("abcdef"), cluster, cluster, (np.arange(30),) * 2)
    clusters = score_direction(MatrixScores(scores), Grouped(labels, labels), Queries(units=units))
    influence = (clips.average_precision - clips.map + clips.by_item) / 30
    of_clusters = np.bincount(cluster, weights=influence)
    assert clusters.unit_values == pytest.approx(clips.map + 6 * (of_clusters - of_clusters.mean()))
    assert clusters.unit_values.mean() == pytest.approx(clips.map)
