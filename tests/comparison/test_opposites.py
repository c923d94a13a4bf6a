import pytest
import torch

from aadml.comparison import Comparison
from aadml.comparison.opposites import MOST, WIDE, share_products

CLIPS = torch.arange(5)


def comparisons(width=WIDE, clips=5):
    audio, visual, codes = torch.randn(clips, width), torch.randn(clips, width), torch.arange(clips)
    return [Comparison.of_ids(audio, visual, codes, codes), Comparison.of_ids(visual, audio, codes, codes)]


def test_the_opposite_comparison_receives_the_transpose_and_computes_nothing():
    first, second = comparisons()
    share_products([first, second])
    matrix = torch.arange(25.0).reshape(5, 5)
    assert first.shared.of("dot", lambda: matrix) is matrix
    received = second.shared.of("dot", lambda: pytest.fail("computed"))
    assert torch.equal(received, matrix.T)
    assert received.is_contiguous()


@pytest.mark.parametrize("keys", [("dot", "cosine"), (("dot", 1.0), ("dot", 2.0))])
def test_other_scores_are_computed(keys):
    first, second = comparisons()
    share_products([first, second])
    first.shared.of(keys[0], lambda: torch.zeros(5, 5))
    assert torch.equal(second.shared.of(keys[1], lambda: torch.ones(5, 5)), torch.ones(5, 5))


def test_only_opposite_comparisons_of_the_same_vectors_share():
    first, second = comparisons()
    share_products([first, first.with_vectors(second.anchors.clone(), first.anchors)])
    assert first.shared is None
    share_products([first, comparisons()[1], second])
    assert first.shared.matrices is second.shared.matrices
    assert first.shared.opposite is not second.shared.opposite


@pytest.mark.parametrize(("width", "clips"), [(WIDE - 1, 5), (WIDE, int(MOST**0.5) + 1)])
def test_narrow_vectors_and_many_pairs_share_nothing(width, clips):
    both = comparisons(width, clips)
    share_products(both)
    assert [comparison.shared for comparison in both] == [None, None]


def test_a_changed_comparison_shares_nothing():
    both = comparisons()
    share_products(both)
    changed = both[0]
    assert changed.with_vectors(changed.anchors, changed.candidates).shared is None
    assert changed.narrow(rows=CLIPS[:2]).shared is None
    assert changed.among(CLIPS[:2]).shared is None
