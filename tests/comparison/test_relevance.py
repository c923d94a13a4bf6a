"""What is relevant to what, against its definition as loops."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from aadml.comparison.clips import Clips
from aadml.comparison.embeddings import Embeddings
from aadml.comparison.relevance import LABEL, LABELS, OWN, RULES, UNLABELLED, Grouped, Judgments, check_relevance
from aadml.feature_extraction.ground.errors import InputError

seeds = st.integers(0, 2**32 - 1)
JUDGMENTS = Judgments({"2": {"0": 2.0, "1": 0.5}, "3": {"3": 1.0}, "5": {"absent": 1.0}})
RULE = pytest.mark.parametrize("rule", [*RULES.values(), JUDGMENTS], ids=lambda rule: rule.name)


def items(seed, count=8, classes=4):
    generator = np.random.default_rng(seed)
    marked = generator.random((count, classes)) < 0.4
    marked[:, -1] |= ~marked.any(axis=1)
    vectors = {"audio": torch.zeros(count, 1), "visual": torch.zeros(count, 1)}
    labels = torch.from_numpy(marked.argmax(axis=1))
    return Embeddings(vectors, labels, tuple(map(str, range(count))), all_labels=torch.from_numpy(marked))


def grade(rule, given, query, item):
    """How relevant an item is to a query, straight from the definition."""
    one, other = (set(np.flatnonzero(given.all_labels[row])) for row in (query, item))
    return {
        "own": float(query == item),
        "label": float(given.labels[query] == given.labels[item]),
        "labels": float(bool(one & other)),
        "labels-graded": len(one & other) / len(one | other),
        "file": JUDGMENTS.grades.get(str(query), {}).get(str(item), 0.0),
    }[rule.name]


@RULE
@settings(max_examples=20)
@given(seed=seeds)
def test_a_rule_equals_its_definition_for_any_queries_and_any_gallery(rule, seed):
    given_items, generator = items(seed), np.random.default_rng(seed)
    queries, gallery = generator.integers(0, 8, 5), generator.permutation(8)[:6]
    relevant = rule.between(given_items, queries, gallery)
    expected = np.array([[grade(rule, given_items, q, g) for g in gallery] for q in queries], dtype=np.float32)
    index = np.arange(5)
    assert relevant.shape == (5, 6)
    np.testing.assert_allclose(relevant.grades(index), expected, rtol=1e-6)
    assert np.array_equal(relevant.block(index), expected > 0)
    assert np.array_equal(relevant.some, (expected > 0).any(axis=1))
    places = generator.integers(0, 6, 5)
    assert np.array_equal(relevant.at(places), expected[index, places] > 0)


def test_the_data_decide_what_is_relevant():
    features = {"audio": torch.zeros(3, 2), "visual": torch.zeros(3, 2)}
    unlabelled = Clips.of(None, **features)
    assert unlabelled.labels.tolist() == [UNLABELLED] * 3
    assert (unlabelled.class_names, unlabelled.one_label_each, unlabelled.relevant) == ((), False, OWN)
    labelled = Clips.of([4, 2, 4], **features)
    assert (labelled.one_label_each, labelled.relevant) == (True, LABEL)
    several = Clips(features, labelled.labels, labelled.ids, labelled.class_names, torch.ones(3, 2).bool())
    assert (several.one_label_each, several.relevant) == (False, LABELS)
    chosen = several.select(torch.tensor([2, 0]))
    assert chosen.all_labels.shape == (2, 2)
    assert chosen.embedded(chosen.features).relevant is LABELS


def test_an_unlabelled_clip_among_labelled_ones_is_relevant_to_nothing():
    given_items = Embeddings({"audio": torch.zeros(3, 1)}, torch.tensor([0, UNLABELLED, UNLABELLED]), ("a", "b", "c"))
    relevant = LABEL.between(given_items, np.arange(3), np.arange(3))
    assert relevant.some.tolist() == [True, False, False]


@pytest.mark.parametrize("name", ["label", "labels", "labels-graded"])
def test_classes_are_not_asked_for_where_there_are_none(name):
    clips = Clips.of(None, audio=torch.zeros(3, 2), visual=torch.zeros(3, 2))
    with pytest.raises(
        InputError, match=f"relevance '{name}' needs class labels, but no clip has a label; choose 'own'"
    ):
        check_relevance(RULES[name], clips, "f.h5")
    check_relevance(OWN, clips, "f.h5")


def test_one_class_is_not_asked_for_where_there_are_several():
    with pytest.raises(InputError, match="some clips have several classes; choose 'labels'"):
        check_relevance(LABEL, items(0), "f.h5")


def test_no_query_has_anything_relevant_in_an_empty_gallery():
    relevant = Grouped(np.array([0, 2]), np.array([], dtype=np.int64))
    assert not relevant.some.any()
    assert relevant.block(np.array([0, 1])).shape == (2, 0)
