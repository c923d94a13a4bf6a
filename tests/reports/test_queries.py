"""Queries of a page: which are picked, their results, where their own partner stands."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from aadml.comparison.embeddings import Embeddings
from aadml.reports import queries as queries_part
from aadml.reports.players import Players
from aadml.reports.previews import PreviewSource
from aadml.reports.queries import _shown, queries, ranked_queries
from aadml.retrieval.evaluation import evaluate
from aadml.retrieval.frame_word import FRAME_WORD, frame_word_scores, pack
from aadml.retrieval.posteriors import second_keys


def embedded(count=20, classes=4, *, rounded=False, seed=0):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(count) % classes
    centers = torch.randn(classes, 3, generator=generator)
    vectors = {m: centers[labels] + torch.randn(count, 3, generator=generator) for m in ("audio", "visual")}
    vectors = {m: v.round() if rounded else v for m, v in vectors.items()}
    ids = tuple(f"clip {number}" for number in range(count))
    return Embeddings(vectors, labels, ids, "dot", tuple("abcd"))


@pytest.mark.parametrize("rounded", [False, True])
def test_results_and_the_rank_of_the_own_clip_equal_their_definitions(rounded):
    embeddings = embedded(rounded=rounded)
    for result in evaluate(embeddings).directions:
        query, candidates = result.direction
        found = list(ranked_queries(embeddings, result))
        assert len(found) == 6
        precisions = [one.average_precision for one in found]
        assert precisions == sorted(precisions, reverse=True)
        assert precisions[0] == result.average_precision.max()
        assert precisions[-1] == result.average_precision.min()
        for one in found:
            scores = [float(embeddings.vectors[query][one.row] @ vector) for vector in embeddings.vectors[candidates]]
            own = scores[one.row]
            above = sum(score > own and not np.isclose(score, own) for score in scores)
            level = sum(np.isclose(score, own) for score in scores)
            assert one.partner_rank == (above + 1, above + level)
            best = sorted(scores, reverse=True)[:6]
            assert [r.score for r in one.results] == pytest.approx(best)
            for r in one.results:
                assert r.score == pytest.approx(scores[r.row])
                assert r.hit == bool(embeddings.labels[r.row] == embeddings.labels[one.row])
                assert r.is_partner == (r.row == one.row)


def test_a_sample_of_queries_is_shown_with_its_own_precisions():
    embeddings = embedded(count=40)
    labels = embeddings.labels.where(torch.arange(40) % 4 > 0, torch.arange(40) + 4)  # a quarter has one relevant item
    embeddings = replace(embeddings, labels=labels, class_names=())
    present = {"visual": torch.arange(40) % 8 > 0}  # and some have none
    embeddings = replace(embeddings, present=present)
    whole, evaluation = evaluate(embeddings), evaluate(embeddings, queries=15)
    for every, result in zip(whole.directions, evaluation.directions, strict=True):
        precisions = dict(zip(every.ids, every.average_precision, strict=True))
        found = list(ranked_queries(embeddings, result, evaluation.sample))
        assert {embeddings.ids[one.row] for one in found} <= set(result.ids)
        assert [precisions[embeddings.ids[one.row]] for one in found] == [one.average_precision for one in found]


def test_posteriors_whose_scores_tie_are_ordered_by_their_logarithms():
    small = torch.arange(1, 9).float() * 1e-12  # too small to change a score
    posteriors = torch.stack([torch.ones(8), small, small.flip(0)], dim=1)
    posteriors = torch.cat([posteriors, torch.tensor([[0.5, 0.25, 0.25]])])  # the scores of this clip are lower
    embeddings = Embeddings(
        dict.fromkeys(("audio", "visual"), posteriors), torch.zeros(9, dtype=torch.long), tuple("abcdefghi"), "dot"
    )
    for result in evaluate(embeddings).directions:
        for one in ranked_queries(embeddings, result):
            assert {r.score for r in one.results} == {float(posteriors[one.row, 0])}
            assert 8 not in {r.row for r in one.results}
            if one.row != 8:
                keys = second_keys(posteriors[one.row : one.row + 1], posteriors[:8], "dot")
                assert [r.row for r in one.results] == np.argsort(-keys, kind="stable")[:6].tolist()
                assert one.results[0].row == one.row


def test_where_rows_repeat_each_clip_is_shown_once():
    embeddings = embedded(count=12)
    sound = embeddings.vectors["audio"][embeddings.labels]  # every row of a clip is the same sound
    vectors = {"audio": sound, "text": embeddings.vectors["visual"]}
    embeddings = replace(embeddings, vectors=vectors, once=("audio",))
    results = {one.direction: one for one in evaluate(embeddings).directions}
    for one in ranked_queries(embeddings, results["audio", "text"]):  # each caption of a clip is its own
        assert [r.hit for r in one.results] == [r.is_partner for r in one.results]
    result = results["text", "audio"]
    found = list(ranked_queries(embeddings, result))
    assert len(found) == 6
    for one in found:
        assert sorted(r.row for r in one.results) == [0, 1, 2, 3]
        assert [r.hit for r in one.results] == [r.is_partner for r in one.results]
        assert sum(r.is_partner for r in one.results) == 1


def test_ties_of_the_own_clip_and_absent_media_are_mentioned(monkeypatch):
    embeddings = embedded(rounded=True)
    vectors = {m: torch.ones_like(v) for m, v in embeddings.vectors.items()}
    embeddings = replace(embeddings, vectors=vectors)
    section, players = queries(embeddings, evaluate(embeddings), {}, room=0)
    assert "own clip at rank 1 to 20 (tied)" in section.content
    assert any("--media" in note for note in section.notes)
    assert all(f"{rank}. visual, score" in section.content for rank in range(1, 6 + 1))
    assert "✓ hit" in section.content
    assert "✗ miss" in section.content
    assert not players.previews
    assert "no preview" in section.content
    monkeypatch.setattr(queries_part, "make_players", lambda *given, **more: Players({}, 0))
    section, _ = queries(embeddings, evaluate(embeddings), {"clip 0": PreviewSource("v", "a")}, room=0)
    assert len(section.notes) == 1
    assert section.notes[0].endswith("marks the query's clip in the other modality. Scores: dot.")


def test_fewer_than_six_queries_are_all_shown_and_a_rank_is_in_words():
    embeddings = embedded(count=4, classes=2)
    for result in evaluate(embeddings).directions:
        found = list(ranked_queries(embeddings, result))
        order = np.argsort(-result.average_precision, kind="stable")
        assert [one.row for one in found] == order.tolist()
        assert [len(one.results) for one in found] == [4] * 4
    ranks = [replace(found[0], partner_rank=rank).rank_in_words for rank in (None, (1, 1), (2, 3))]
    assert ranks == ["not in the gallery", "at rank 1", "at rank 2 to 3 (tied)"]


@pytest.mark.parametrize(("label", "names", "shown"), [(1, ("a", "b"), "b"), (1, (), "1"), (-1, ("a", "b"), None)])
def test_the_class_of_a_clip_is_its_name_or_its_number(label, names, shown):
    vectors = {m: torch.zeros(1, 2) for m in ("audio", "visual")}
    embeddings = Embeddings(vectors, torch.tensor([label]), ("clip",), class_names=names)
    clip = _shown(embeddings, 0, Players({}, 0))
    assert clip == {"id": "clip", "class_name": shown, "player": '<p class="absent">no preview</p>'}


def test_further_texts_of_a_clip_are_shown_as_queries_of_their_own():
    clip = torch.tensor([0, 1, 2, 0, 1])
    vectors = {"audio": torch.eye(3)[clip], "text": torch.eye(3)[clip] + 0.1 * torch.arange(5.0)[:, None]}
    present = {"audio": torch.arange(5) < 3}
    ids = tuple("abcab")
    embeddings = Embeddings(vectors, torch.full((5,), -1), ids, "dot", present=present)
    (result,) = [one for one in evaluate(embeddings).directions if one.direction == ("text", "audio")]
    found = list(ranked_queries(embeddings, result))
    assert sorted(one.row for one in found) == [0, 1, 2, 3, 4]
    for one in found:
        assert [ids[r.row] for r in one.results if r.is_partner] == [ids[one.row]]
        assert one.partner_rank == (1, 1)


def test_sequences_are_ranked_by_their_own_relevance_and_are_no_map(monkeypatch):
    generator = torch.Generator().manual_seed(0)
    frames = pack(torch.randn(6, 7, 4, generator=generator), torch.tensor([7, 5, 7, 3, 7, 7]), side="frames")
    words = pack(torch.randn(6, 3, 4, generator=generator), torch.full((6,), 3), side="words")
    embeddings = Embeddings({"audio": frames, "text": words}, torch.arange(6) % 3, tuple("abcdef"), FRAME_WORD)
    evaluation = evaluate(embeddings)
    scores = frame_word_scores(frames, words)
    for query in ranked_queries(embeddings, evaluation.directions[0]):
        best = scores[query.row].sort(descending=True)
        assert [result.row for result in query.results] == best.indices.tolist()
        assert [result.score for result in query.results] == best.values.double().tolist()
    run_page = pytest.importorskip("aadml.reports.run_page")
    monkeypatch.setattr(run_page.figures, "class_bars", lambda *given: "<svg bars/>")
    assert "bars" in run_page._classes(evaluation, embeddings).content
