import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pytorch_metric_learning import miners

from aadml.comparison import Comparison
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.options import OptionValues
from aadml.feature_extraction.ground.validation import checked_options
from aadml.selections import SELECTIONS


def line(positions, labels, anchor=0.0):
    """One anchor on a line, candidates at `positions`; label 0 is the anchor's."""
    candidates = torch.tensor(positions)[:, None]
    return Comparison.of_labels(
        torch.tensor([[anchor]]), candidates, torch.zeros(1), torch.tensor(labels).float(), own=torch.tensor([0])
    )


def dice(seed=0):
    return torch.Generator().manual_seed(seed)


def columns(mask):
    return mask.nonzero()[:, 1].tolist()


def test_hardest_is_the_nearest_negative():
    kept = SELECTIONS["hardest"](line([1.0, 2.0, 3.0, 4.0], [0, 1, 1, 0]), dice(), positive="all")
    assert columns(kept.negatives) == [1]
    assert columns(kept.positives) == [0, 3]


@pytest.mark.parametrize(("positive", "column"), [("own", 0), ("hardest", 3)])
def test_the_positive_is_the_one_asked_for(positive, column):
    kept = SELECTIONS["hardest"](line([1.0, 2.0, 3.0, 4.0, 0.5], [0, 1, 1, 0, 0]), dice(), positive=positive)
    assert columns(kept.positives) == [column]


def test_under_a_similarity_hardest_is_the_most_similar():
    anchors, candidates = torch.tensor([[1.0, 0.0]]), torch.tensor([[1.0, 0.0], [0.5, 0.5], [5.0, -20.0]])
    c = Comparison.of_labels(anchors, candidates, torch.zeros(1), torch.tensor([0.0, 1.0, 1.0]))
    assert columns(SELECTIONS["hardest"](c, dice(), score="cosine").negatives) == [1]
    assert columns(SELECTIONS["hardest"](c, dice(), score="dot").negatives) == [2]


def test_a_random_positive_is_every_positive_in_turn():
    c = line([1.0, 2.0, 3.0, 4.0], [0, 1, 0, 0])
    drawn = {columns(SELECTIONS["hardest"](c, dice(seed)).positives)[0] for seed in range(40)}
    assert drawn == {0, 2, 3}


def test_random_negatives_are_uniform():
    anchors = torch.zeros(3000, 1)
    labels = torch.tensor([0, 1, 1, 1, 1])
    c = Comparison.of_labels(anchors, torch.zeros(5, 1), torch.zeros(3000, dtype=torch.int64), labels)
    counts = SELECTIONS["random"](c, dice()).negatives.sum(0)
    assert counts[0] == 0
    assert counts.sum() == 3000
    assert (counts[1:] - 750).abs().max() < 120


def test_batch_hard_is_the_farthest_positive_and_the_nearest_negative():
    kept = SELECTIONS["batch-hard"](line([1.0, 2.0, 3.0, 4.0], [0, 1, 1, 0]), dice())
    assert columns(kept.positives) == [3]
    assert columns(kept.negatives) == [1]


def test_semi_hard_is_the_nearest_negative_farther_than_the_positive():
    c = line([2.0, 1.0, 3.0, 4.0], [0, 1, 1, 1])
    assert columns(SELECTIONS["semi-hard"](c, dice()).negatives) == [2]
    assert columns(SELECTIONS["semi-hard"](c, dice(), keep="all").negatives) == [2, 3]
    kept = SELECTIONS["semi-hard"](c, dice(), keep="all", margin=6.0)
    assert columns(kept.negatives) == [2]


def test_semi_hard_leaves_out_an_anchor_whose_negatives_are_all_nearer():
    kept = SELECTIONS["semi-hard"](line([5.0, 1.0], [0, 1]), dice())
    assert not kept.negatives.any()


def test_two_sided_semi_hard_may_take_a_negative_nearer_than_the_positive():
    kept = SELECTIONS["semi-hard-two-sided"](line([2.0, 1.9, 3.0], [0, 1, 1]), dice(), score="euclidean")
    assert columns(kept.negatives) == [1]


@pytest.mark.parametrize(
    ("name", "column"),
    [("text-based-hard", 1), ("text-based-easy", 2), ("audio-based-hard", 2), ("audio-based-easy", 3)],
)
def test_guided_selections_follow_the_similarity_within_a_modality(name, column):
    guides = {"text": torch.tensor([[1.0, 0.9, 0.1, 0.5]]), "audio": torch.tensor([[1.0, 0.5, 0.9, 0.1]])}
    kept = SELECTIONS[name](replace(line([1.0] * 4, [0, 1, 1, 1]), guides=guides), dice())
    assert columns(kept.negatives) == [column]
    assert columns(kept.positives) == [0]


def test_a_guide_that_is_absent_is_refused_by_name():
    with pytest.raises(InputError, match=r"no similarities within text \(available guides: none\); choose another"):
        SELECTIONS["text-based-hard"](line([1.0, 2.0], [0, 1]), dice())


@given(seed=st.integers(0, 2**32 - 1))
def test_one_pair_a_class_keeps_every_class_once(seed):
    labels = torch.randint(5, (17,), generator=dice(seed))
    c = Comparison.of_labels(torch.zeros(17, 1), torch.zeros(17, 1), labels, labels)
    kept = SELECTIONS["one-pair-a-class"](c, dice(seed + 1))
    assert sorted(kept.anchor_class.tolist()) == labels.unique().tolist()
    assert kept.positives.sum(1).tolist() == [1] * len(kept.anchors)
    chosen = kept.positives.int().argmax(1)
    assert labels[chosen].tolist() == kept.anchor_class.tolist()
    for i in range(len(chosen)):
        assert columns(kept.negatives[i : i + 1]) == sorted(chosen[torch.arange(len(chosen)) != i].tolist())


def test_one_pair_a_class_keeps_one_caption_a_clip():
    clips = torch.tensor([3, 3, 8, 8, 8, 1])
    c = Comparison.of_ids(torch.zeros(6, 1), torch.zeros(6, 1), clips, clips)
    kept = SELECTIONS["one-pair-a-class"](c, dice())
    assert sorted(clips[kept.own].tolist()) == [1, 3, 8]
    assert kept.negatives.sum(1).tolist() == [2, 2, 2]


def test_one_pair_a_class_leaves_out_classes_without_a_positive():
    c = Comparison.of_labels(torch.zeros(3, 1), torch.zeros(2, 1), torch.tensor([0, 1, 2]), torch.tensor([0, 2]))
    assert sorted(SELECTIONS["one-pair-a-class"](c, dice()).anchor_class.tolist()) == [0, 2]


OF_ONE_POSITIVE = {
    "semi-hard": "random",
    "random": "random",
    "semi-hard-two-sided": "own",
    "one-pair-a-class": "random",
}


@pytest.mark.parametrize("name", OF_ONE_POSITIVE)
def test_selections_of_one_positive_refuse_all(name):
    with pytest.raises(InputError, match=r"selection.positive is .*was removed"):
        checked_options(SELECTIONS[name], OptionValues(positive="all"), "selection")


@pytest.mark.parametrize(("name", "kept"), OF_ONE_POSITIVE.items())
def test_a_removed_positive_is_accepted_at_its_value(name, kept):
    entry = SELECTIONS[name]
    assert checked_options(entry, OptionValues(positive=kept), "selection") == checked_options(
        entry, OptionValues(), "selection"
    )


def test_another_positive_is_refused_with_what_there_is():
    with pytest.raises(InputError, match='is "nearest"; pass one of all, random, own, hardest'):
        checked_options(SELECTIONS["hardest"], OptionValues(positive="nearest"), "selection")


@given(seed=st.integers(0, 2**32 - 1), margin=st.floats(0, 1))
def test_multi_similarity_keeps_the_pairs_that_its_definition_does(seed, margin):
    x, r = torch.randn(2, 8, 3, generator=dice(seed), dtype=torch.float64)
    labels = torch.randint(3, (8,), generator=dice(seed))
    c = Comparison.of_labels(x, r, labels, labels)
    kept = SELECTIONS["multi-similarity"](c, dice(), margin=margin)
    for i in range(8):
        alike = {j: float(c.cosine[i, j]) for j in range(8)}
        positives, negatives = ([j for j in range(8) if mask[i, j]] for mask in (c.positives, c.negatives))
        highest = max((alike[j] for j in negatives), default=-math.inf)
        lowest = min((alike[j] for j in positives), default=math.inf)
        assert columns(kept.positives[i : i + 1]) == [j for j in positives if alike[j] - margin < highest]
        assert columns(kept.negatives[i : i + 1]) == [j for j in negatives if alike[j] + margin > lowest]


def test_multi_similarity_mines_the_pairs_that_the_peer_does():
    x = torch.randn(20, 3, generator=dice(1))
    labels = torch.arange(20) % 4
    c = Comparison.of_labels(x, x, labels, labels, itself=torch.arange(20))
    kept = SELECTIONS["multi-similarity"](c, dice(), margin=0.1)
    anchor, positive, other, negative = miners.MultiSimilarityMiner(epsilon=0.1)(x, labels)
    assert kept.positives.any()
    assert torch.equal(kept.positives, torch.zeros(20, 20).index_put((anchor, positive), torch.ones(())).bool())
    assert torch.equal(kept.negatives, torch.zeros(20, 20).index_put((other, negative), torch.ones(())).bool())
