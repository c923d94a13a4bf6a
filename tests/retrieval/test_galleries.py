"""Galleries without the query's own clip, and disjoint from the queries, against their definitions."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from aadml.comparison.embeddings import Embeddings
from aadml.comparison.relevance import LABEL, OWN, Grouped
from aadml.feature_extraction.ground.errors import InputError
from aadml.retrieval.directions import score_direction
from aadml.retrieval.evaluation import evaluate, mean_figure, per_query
from aadml.retrieval.galleries import halves, without_partner
from aadml.retrieval.legacy_running_map import running_average_precision
from aadml.retrieval.ranking import rank
from aadml.retrieval.scores import MatrixScores, score_source
from aadml.retrieval.significance import seeds_and_clips

DIRECTIONS = (("audio", "visual"), ("visual", "audio"))


def embeddings(count=40, classes=3, seed=0, **options):
    """Rounded vectors, so that many scores tie."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(count) % classes
    vectors = {
        m: (torch.randn(count, 3, generator=generator) + 2 * torch.eye(3)[labels % 3]).round()
        for m in ("audio", "visual")
    }
    return Embeddings(vectors, labels, tuple(f"clip{i:03}" for i in range(count)), **options)


def average_precision(relevant):
    ranks = [i + 1 for i, hit in enumerate(relevant) if hit]
    return sum((k + 1) / r for k, r in enumerate(ranks)) / len(ranks)


def expected_average_precision(scores, relevant):
    """Over all orders of the items that keep the better scores first."""
    found = [
        average_precision([relevant[i] for i in order])
        for order in itertools.permutations(range(len(scores)))
        if all(scores[a] >= scores[b] for a, b in itertools.pairwise(order))
    ]
    return np.mean(found)


def expected_by_loops(scores, labels, kept):
    """For each query with something relevant: AP over the items `kept` (query, item), and that of any order."""
    precision, chance = [], []
    for i, row in enumerate(scores):
        items = [j for j in range(len(row)) if kept(i, j)]
        relevant = [labels[j] == labels[i] for j in items]
        if any(relevant):
            precision.append(expected_average_precision([row[j] for j in items], relevant))
            chance.append(expected_average_precision([0] * len(items), relevant))
    return precision, chance


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_without_the_partner_map_and_chance_are_those_of_the_definition(data):
    count = data.draw(st.integers(2, 6))
    scores = np.array(data.draw(st.lists(st.integers(-1, 1), min_size=count**2, max_size=count**2)), dtype=np.float32)
    scores = scores.reshape(count, count)
    labels = np.array(data.draw(st.lists(st.integers(0, 2), min_size=count, max_size=count)))
    precision, chance = expected_by_loops(scores, labels, lambda i, j: i != j)
    partner, source = np.arange(count), MatrixScores(scores)
    if not precision:
        with pytest.raises(InputError, match="no query has a relevant item other than its own clip"):
            score_direction(source, Grouped(labels, labels), partner=partner, exclude_partner=True)
        return
    found = score_direction(source, Grouped(labels, labels), partner=partner, exclude_partner=True)
    np.testing.assert_allclose(found.average_precision, precision, atol=1e-12)
    np.testing.assert_allclose(found.chance, chance, atol=1e-12)
    assert found.gallery == count - 1
    assert found.without_relevant == count - len(precision)
    beside = score_direction(source, Grouped(labels, labels), partner=partner).figures
    assert beside["without_partner", "map"] == pytest.approx(np.mean(precision), abs=1e-12)
    assert beside["without_partner", "chance"] == pytest.approx(np.mean(chance), abs=1e-12)
    assert beside["without_partner", "queries"] == len(precision)


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_a_ranking_without_the_partner_is_that_of_the_scores_without_its_column(data):
    queries, items = data.draw(st.integers(1, 4)), data.draw(st.integers(2, 9))
    random = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    scores, relevant = (
        random.integers(-2, 3, (queries, items)).astype(np.float32),
        random.random((queries, items)) < 0.5,
    )
    partner = random.integers(0, items, queries)
    relevant[np.arange(queries), partner] = True
    kept, found = without_partner(rank(scores, relevant, partner))
    assert kept.tolist() == [i for i in range(queries) if relevant[i].sum() > 1]
    for place, i in enumerate(kept):
        alone = rank(np.delete(scores[i], partner[i])[None], np.delete(relevant[i], partner[i])[None])
        part = slice(found.offsets[place], found.offsets[place + 1])
        for name in ("above", "size", "hits_above", "hits"):
            assert getattr(found, name)[part].tolist() == getattr(alone, name).tolist()
        assert (found.relevant[place], found.tied[place]) == (alone.relevant[0], alone.tied[0])
        assert found.items == alone.items


def test_every_figure_without_the_partner_is_that_of_rankings_without_it():
    given = embeddings()
    labels = given.labels.numpy()
    found = evaluate(given, gallery="without-partner", extra=("recall@3", "running"))
    assert found.gallery == "without-partner"
    for query, gallery in DIRECTIONS:
        scores = score_source(given.vectors[query], given.vectors[gallery]).block(0, 40)
        each = [
            score_direction(
                MatrixScores(np.delete(scores[i], i)[None]),
                Grouped(labels[[i]], np.delete(labels, i)),
                extra=("recall@3", "running"),
            ).record()
            for i in range(40)
        ]
        record = found[f"{query}-{gallery}"].record()
        for metric in ("map", "precision@10", "recall@3", "hit-rate@1", "map-at-r", "mean-rank", "running"):
            assert record.figure(metric) == pytest.approx(np.mean([one.figure(metric) for one in each]), abs=1e-12)
        assert record.map_bounds == pytest.approx(np.mean([one.map_bounds for one in each], axis=0), abs=1e-12)
        assert record.chance == pytest.approx(np.mean([one.chance for one in each]), abs=1e-12)
        assert record.tie_rate == pytest.approx(np.mean([one.tie_rate for one in each]), abs=1e-12)
        assert record.scope.precision == pytest.approx(
            np.mean([one.scope.precision for one in each], axis=0), abs=1e-12
        )
        running = per_query(given, (query, gallery), running_average_precision, "without-partner")
        assert running.mean() == pytest.approx(record.figure("running"), abs=1e-12)


def test_the_full_gallery_has_map_without_the_partner_beside_it_and_as_a_metric():
    given = embeddings()
    full, other = evaluate(given).record(), evaluate(given, gallery="without-partner").record()
    assert (full.gallery, other.gallery) == ("full", "without-partner")
    assert full.figure("map-without-partner") == pytest.approx(other.map_mean, abs=1e-12)
    assert mean_figure(given, "map-without-partner") == pytest.approx(other.map_mean, abs=1e-12)
    beside = full.to_json()["directions"]["audio-visual"]["without_partner"]
    assert beside["chance"] == pytest.approx(other.directions["audio-visual"].chance)
    assert beside["queries"] == 40


def test_a_partner_that_is_the_only_thing_found_is_worth_nothing_without_it():
    """Vectors of clips, not of classes: with the partner MAP is far above chance, without it at chance."""
    generator = torch.Generator().manual_seed(0)
    vectors = torch.randn(300, 64, generator=generator)
    given = Embeddings({"audio": vectors, "visual": vectors}, torch.arange(300) % 60, tuple(map(str, range(300))))
    full, other = evaluate(given), evaluate(given, gallery="without-partner")
    assert full.map_mean > 5 * full.chance
    assert other.map_mean == pytest.approx(other.chance, abs=0.01)


def test_halves_are_even_in_every_class_and_know_neither_order_nor_labels_names():
    labels = np.repeat([0, 1, 2], [7, 10, 4])
    ids = [f"clip{i}" for i in range(21)]
    half = halves(ids, labels)
    assert set(half) == {0, 1}
    for label in range(3):
        own = half[labels == label]
        assert abs(int((own == 0).sum()) - int((own == 1).sum())) <= 1
    assert abs(int((half == 0).sum()) - int((half == 1).sum())) <= 1
    order = np.random.default_rng(3).permutation(21)
    assert halves([ids[i] for i in order], labels[order]).tolist() == half[order].tolist()
    assert halves([*ids, *ids], np.tile(labels, 2)).tolist() == [*half, *half]


@pytest.mark.parametrize("count", [40, 41])
def test_disjoint_halves_are_scored_as_by_hand(count):
    given = embeddings(count)
    labels, half = given.labels.numpy(), halves(given.ids, given.labels.numpy())
    found = evaluate(given, gallery="disjoint", extra=("recall@3",))
    for query, gallery in DIRECTIONS:
        ways = []
        for own in (0, 1):
            asks, ranked = half == own, half != own
            source = score_source(given.vectors[query][asks], given.vectors[gallery][ranked])
            ways.append(score_direction(source, Grouped(labels[asks], labels[ranked]), extra=("recall@3",)))
        result = found[f"{query}-{gallery}"]
        by_hand = np.concatenate([way.average_precision for way in ways])
        np.testing.assert_allclose(result.average_precision, by_hand, atol=1e-12)
        assert result.chance.mean() == pytest.approx(np.concatenate([way.chance for way in ways]).mean())
        assert sorted(result.ids) == sorted(given.ids)
        assert (len(result.ids), result.gallery) == (count, count // 2)
        weights = [len(way.ids) for way in ways]
        for metric in ("recall@3", "precision@5", "map-at-r"):
            expected = np.average([way.record().figure(metric) for way in ways], weights=weights)
            assert result.record().figure(metric) == pytest.approx(expected)
        assert result.tie_rate == pytest.approx(np.average([way.tie_rate for way in ways], weights=weights))
        assert sum(row.queries * row.map for row in result.by_class) / count == pytest.approx(result.map)
    assert evaluate(given, extra=("map-disjoint",)).record().figure("map-disjoint") == pytest.approx(found.map_mean)
    assert mean_figure(given, "map-disjoint") == pytest.approx(found.map_mean, abs=1e-12)


@pytest.mark.parametrize(("metric", "reduced"), [("median-rank", np.median), ("mean-rank", np.mean)])
def test_a_rank_is_reduced_over_queries_as_its_name_says(metric, reduced):
    vectors = np.random.default_rng(0).normal(size=(2, 31, 3))
    given = Embeddings(
        {m: torch.tensor(side) for m, side in zip(("audio", "visual"), vectors, strict=True)},
        torch.arange(31),
        tuple(f"clip{i:02}" for i in range(31)),
    )
    units = vectors / np.linalg.norm(vectors, axis=2, keepdims=True)
    scores = units[0] @ units[1].T
    ranks = [(side > np.diag(side)[:, None]).sum(1) + 1 for side in (scores, scores.T)]
    assert evaluate(given)[metric] == pytest.approx(np.mean([reduced(rank) for rank in ranks]))


def test_disjoint_map_and_chance_are_those_of_the_definition():
    given = embeddings(9, classes=2)
    labels, half = given.labels.numpy(), halves(given.ids, given.labels.numpy())
    found = evaluate(given, gallery="disjoint")["audio-visual"]
    scores = score_source(given.vectors["audio"], given.vectors["visual"]).block(0, 9)
    precision, chance = expected_by_loops(scores, labels, lambda i, j: half[i] != half[j])
    assert found.map == pytest.approx(np.mean(precision), abs=1e-12)
    assert found.chance.mean() == pytest.approx(np.mean(chance), abs=1e-12)


def test_clips_alone_in_their_class_are_counted_under_every_gallery():
    given = embeddings(9)
    alone = replace(given, labels=torch.tensor([0, 0, 0, 0, 1, 1, 1, 1, 2]))
    for gallery in ("without-partner", "disjoint"):
        record = evaluate(alone, gallery=gallery).record().directions["audio-visual"]
        assert (record.queries, record.queries_without_relevant) == (8, 1)
    assert evaluate(alone).record().directions["audio-visual"].queries_without_relevant == 0
    assert evaluate(alone).to_json()["directions"]["audio-visual"]["without_partner"]["queries"] == 8


def test_where_a_clip_is_its_own_class_nothing_is_left_and_that_is_said():
    given = embeddings(12)
    pairs = replace(given, labels=torch.arange(12))
    assert "without_partner" not in evaluate(pairs).to_json()["directions"]["audio-visual"]
    for gallery in ("without-partner", "disjoint"):
        with pytest.raises(InputError, match="no query has a relevant item"):
            evaluate(pairs, gallery=gallery)
        with pytest.raises(InputError, match="no query has a relevant item"):
            mean_figure(pairs, f"map-{gallery}")


def test_several_rows_of_a_clip_have_no_partner():
    given = embeddings(12)
    repeated = replace(given, ids=tuple(f"clip{i // 2}" for i in range(12)))
    for one in (repeated, replace(given, labels=torch.arange(12) // 3, once=("audio",))):
        assert "without_partner" not in evaluate(one).to_json()["directions"]["audio-visual"]
        with pytest.raises(InputError, match="clips have several rows"):
            evaluate(one, gallery="without-partner")
        with pytest.raises(InputError, match="clips have several rows"):
            evaluate(one, extra=("map-without-partner",))


def test_other_galleries_and_partners_are_refused():
    with pytest.raises(InputError, match=r"the \d+ clips cannot be halved"):
        evaluate(embeddings(1), gallery="disjoint")


@pytest.mark.parametrize(
    "gallery",
    [
        pytest.param("full", marks=pytest.mark.slow),
        pytest.param("without-partner", marks=pytest.mark.soak),
        pytest.param("disjoint", marks=pytest.mark.soak),
    ],
)
def test_a_planted_null_of_rankings_is_starred_in_five_percent_of_200_comparisons(gallery):
    """Two equal methods of five seeds see the same clips, drawn anew in every comparison."""
    generator, labels = torch.Generator().manual_seed(0), torch.arange(48) % 3
    ids, stars = tuple(f"clip{i:02}" for i in range(48)), []

    def noise():
        return torch.randn(48, 3, generator=generator)

    for _ in range(200):
        clips = {m: torch.eye(3)[labels] + noise() for m in ("audio", "visual")}
        both = []
        for _ in ("first", "second"):
            seeds = [Embeddings({m: x + noise() / 2 for m, x in clips.items()}, labels, ids) for _ in range(5)]
            found = [evaluate(one, gallery=gallery, cutoffs=(1,)) for one in seeds]
            both.append(np.stack([one.directions[0].average_precision for one in found]))
        stars.append(seeds_and_clips(*both).significant)
    assert 0.02 <= np.mean(stars) <= 0.08


def masked(made, lacking=0.3, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return replace(made, present={m: torch.rand(len(made), generator=generator) >= lacking for m in made.vectors})


@pytest.mark.parametrize("relevance", [LABEL, OWN])
def test_who_lacks_a_modality_neither_asks_nor_is_ranked(relevance):
    made = replace(masked(embeddings()), relevance=relevance)
    found = evaluate(made)
    groups = made.labels.numpy() if relevance is LABEL else np.arange(len(made))
    for result, (query, gallery) in zip(found.directions, DIRECTIONS, strict=True):
        rows = [np.flatnonzero(made.present[m].numpy()) for m in (query, gallery)]
        vectors = (made.vectors[m][own] for m, own in zip((query, gallery), rows, strict=True))
        expected = score_direction(score_source(*vectors, "cosine"), Grouped(groups[rows[0]], groups[rows[1]]))
        assert np.array_equal(result.average_precision, expected.average_precision)
        assert np.array_equal(result.chance, expected.chance)
        assert result.without_relevant == expected.without_relevant
        assert result.gallery == len(rows[1])


def test_what_stands_in_missing_rows_is_never_scored():
    made = masked(embeddings(classes=3))
    vectors = {m: torch.where(made.present[m][:, None], v, torch.full_like(v, 7.0)) for m, v in made.vectors.items()}
    assert evaluate(made).to_json(queries=True) == evaluate(replace(made, vectors=vectors)).to_json(queries=True)


def test_the_own_clip_is_taken_out_for_those_that_have_one():
    made = masked(embeddings())
    both = made.present["audio"] & made.present["visual"]
    found = evaluate(made, gallery="without-partner")
    for result, (_, gallery) in zip(found.directions, DIRECTIONS, strict=True):
        assert set(result.ids) <= {made.ids[i] for i in both.nonzero()[:, 0].tolist()}
        assert result.gallery == int(made.present[gallery].sum()) - 1


def test_disjoint_halves_leave_out_what_is_missing():
    made = masked(embeddings())
    for result, (query, _) in zip(evaluate(made, gallery="disjoint").directions, DIRECTIONS, strict=True):
        assert len(result.ids) + result.without_relevant == int(made.present[query].sum())
