import pytest
import torch

from aadml.comparison import Comparison
from aadml.comparison.opposites import MOST, share_results

CLIPS = torch.arange(5)


def comparisons(clips=5):
    audio, visual, codes = torch.randn(clips, 3), torch.randn(clips, 3), torch.arange(clips)
    return [Comparison.of_ids(audio, visual, codes, codes), Comparison.of_ids(visual, audio, codes, codes)]


@pytest.mark.parametrize("order", [1, -1])
def test_each_comparison_receives_its_result_which_is_computed_once(order):
    first, second = comparisons()[::order]
    share_results([first, second][::order])
    assert first.shared.of("dot", lambda: (1, 2)) == 1
    for comparison, result in ((first, 1), (second, 2)):
        assert comparison.shared.of("dot", lambda: pytest.fail("computed")) == result


@pytest.mark.parametrize("keys", [("dot", "cosine"), (("dot", 1.0), ("dot", 2.0))])
def test_other_results_are_computed(keys):
    first, second = comparisons()
    share_results([first, second])
    first.shared.of(keys[0], lambda: (1, 2))
    assert second.shared.of(keys[1], lambda: (3, 4)) == 3


def test_only_opposite_comparisons_of_the_same_vectors_share():
    first, second = comparisons()
    share_results([first, first.with_vectors(second.anchors.clone(), first.anchors)])
    assert first.shared is None
    share_results([first, comparisons()[1], second])
    assert first.shared.results is second.shared.results
    assert first.shared.opposite is not second.shared.opposite


def test_many_pairs_share_nothing():
    both = comparisons(int(MOST**0.5) + 1)
    share_results(both)
    assert [comparison.shared for comparison in both] == [None, None]


def test_a_changed_comparison_shares_nothing():
    both = comparisons()
    share_results(both)
    changed = both[0]
    assert changed.with_vectors(changed.anchors, changed.candidates).shared is None
    assert changed.narrow(rows=CLIPS[:2]).shared is None
    assert changed.among(CLIPS[:2]).shared is None
