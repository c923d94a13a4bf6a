"""Events that can be perceived in one modality alone: what is relevant, by its definition, and from file to figures."""

import itertools

import numpy as np
import pytest
import torch

from aadml.comparison.embeddings import Embeddings
from aadml.feature_extraction.ground.errors import InputError
from aadml.retrieval.evaluation import evaluate
from aadml.retrieval.judgments import chosen_relevance

FILE = """id,audio_labels,visual_labels,note
0,dog|siren,dog,the siren is heard but not seen
1,siren,siren,
2,,dog,a silent dog
3,rain,rain,"a, b"
"""
HEARD = {"0": {"dog", "siren"}, "1": {"siren"}, "2": set(), "3": {"rain"}, "4": set()}
SEEN = {"0": {"dog"}, "1": {"siren"}, "2": {"dog"}, "3": {"rain"}, "4": set()}


@pytest.fixture
def rule(tmp_path):
    (tmp_path / "events.csv").write_text(FILE)
    return chosen_relevance(str(tmp_path / "events.csv"))


def embeddings(rule, scores):
    """Vectors whose dot products are given scores of sounds against pictures; the last clip is not in the file."""
    vectors = {"audio": torch.as_tensor(scores), "visual": torch.eye(5, dtype=torch.float64)}
    return Embeddings(vectors, torch.zeros(5, dtype=torch.int64), tuple("01234"), "dot", relevance=rule)


@pytest.mark.parametrize("direction", [("audio", "visual"), ("visual", "audio"), ("audio", "audio")])
def test_relevant_is_what_both_sides_let_be_perceived(rule, direction):
    sides = [{"audio": HEARD, "visual": SEEN}[modality] for modality in direction]
    wanted = np.array([[bool(sides[0][q] & sides[1][i]) for i in "01234"] for q in "01234"])
    rows = np.arange(5)
    found = rule.along(direction, embeddings(rule, np.eye(5)), rows, rows)
    np.testing.assert_array_equal(found.block(rows), wanted)
    np.testing.assert_array_equal(found.some, wanted.any(axis=1))


def test_an_event_that_is_heard_but_not_seen_is_not_relevant_among_pictures(rule):
    """AP of each query by hand: query 1 asks for a siren, which clip 0 sounds and does not show."""
    scores = np.array([[1.0, 5, 4, 3, 2]] * 5)
    found = evaluate(embeddings(rule, scores))
    forth, back = found["audio-visual"], found["visual-audio"]
    assert found.relevance == "events"
    assert (forth.ids, forth.without_relevant) == (("0", "1", "3"), 2)
    wanted = [(1 / 1 + 2 / 2 + 3 / 5) / 3, 1.0, 1 / 3]  # pictures in the order 1, 2, 3, 4, 0
    np.testing.assert_allclose(forth.average_precision, wanted)
    assert back.ids == ("0", "1", "2", "3")
    for query, chance in zip("0123", back.chance, strict=True):
        own = [bool(SEEN[query] & HEARD[item]) for item in "01234"]
        assert chance == pytest.approx(np.mean([precision(order) for order in itertools.permutations(own)]))


def precision(order):
    """The mean precision at the relevant places of one order."""
    places = np.flatnonzero(order)
    return np.mean([sum(order[: place + 1]) / (place + 1) for place in places])


def test_says_what_is_wrong_with_a_file_of_events(tmp_path, rule):
    for text, message in [
        ("id,audio_labels\n0,a,b\n", "line 2 has 3 cells, but the header has 2"),
        ("id,audio_labels\n0,a\n0,b\n", "line 3 repeats clip '0'"),
        ("name,audio_labels\n0,a\n", "line 1 is not a judgment"),
    ]:
        (tmp_path / "wrong.csv").write_text(text)
        with pytest.raises(InputError, match=message):
            chosen_relevance(str(tmp_path / "wrong.csv"))
    (tmp_path / "sounds.csv").write_text("id,audio_labels\n0,a\n")
    with pytest.raises(
        InputError, match="no events of visual; add these events, or compare only modalities with events: audio"
    ):
        evaluate(embeddings(chosen_relevance(str(tmp_path / "sounds.csv")), np.eye(5)))
