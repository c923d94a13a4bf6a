import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch._subclasses.fake_tensor import FakeTensorMode

from aadml.losses.kernels import violations as kernel


def counting(count):
    """A way of counting, given masks in bits."""
    return lambda far, positives, negatives, margin: count(
        far, positives.to(far.dtype), negatives.to(far.dtype), margin
    )


violations, _by_packed_sort, _by_search = map(counting, (kernel.violations, kernel._by_packed_sort, kernel._by_search))


def definition(far, positives, negatives, margin):
    counts = torch.zeros_like(far)
    for i in range(far.shape[0]):
        for p in positives[i].nonzero()[:, 0].tolist():
            for n in negatives[i].nonzero()[:, 0].tolist():
                if far[i, p] + margin > far[i, n]:
                    counts[i, p] += 1
                    counts[i, n] -= 1
    return counts


@st.composite
def batches(draw):
    rows, columns = draw(st.integers(1, 6)), draw(st.integers(1, 9))
    random = torch.Generator().manual_seed(draw(st.integers(0, 2**32 - 1)))
    coarse = draw(st.booleans())
    far = torch.randint(-3, 4, (rows, columns), generator=random) / 2 if coarse else None
    far = torch.randn(rows, columns, generator=random) * 3 if far is None else far
    which = torch.randint(3, (rows, columns), generator=random)
    return far, which == 1, which == 2


@given(batch=batches(), margin=st.sampled_from([0.0, 0.5, 1.0, 1.25, 4.0]))
def test_counts_are_those_of_loops_over_all_triplets_with_ties_and_signs(batch, margin):
    far, positives, negatives = batch
    expected = definition(far, positives, negatives, margin)
    assert torch.equal(violations(far, positives, negatives, margin), expected)
    assert torch.equal(violations(far.double(), positives, negatives, margin), expected.double())


def test_double_precision_tells_apart_what_single_precision_cannot():
    far = torch.tensor([[1.0, 1.0 - 1e-12, 1.0 + 1e-12, 1.0, 2.0]], dtype=torch.float64)
    positives = torch.tensor([[True, True, False, False, False]])
    counts = violations(far, positives, ~positives, 0.0)
    assert counts.tolist() == [[0.0, 0.0, 0.0, 0.0, 0.0]]
    counts = violations(-far, positives, ~positives, 0.0)
    assert counts.tolist() == [[2.0, 3.0, -2.0, -1.0, -2.0]]
    assert counts.dtype == torch.float64


@given(batch=batches(), margin=st.sampled_from([0.0, 0.5, 1.0]), alone=st.sampled_from(["positives", "negatives"]))
def test_rows_with_a_single_positive_or_negative_count_as_all_rows_do(batch, margin, alone):
    far, positives, negatives = batch
    sides = {"positives": positives, "negatives": negatives}
    sides[alone] = sides[alone] & (sides[alone].cumsum(1) == 1)
    expected = definition(far, sides["positives"], sides["negatives"], margin)
    for count in (violations, _by_packed_sort, _by_search):
        assert torch.equal(count(far, sides["positives"], sides["negatives"], margin), expected)


@pytest.mark.parametrize("threads", [1, 2])
def test_blocks_and_threads_change_nothing(threads):
    random = torch.Generator().manual_seed(0)
    far = torch.rand(700, 900, generator=random) * 10 - 3
    labels = torch.randint(7, (700,), generator=random)
    positives = labels[:, None] == torch.randint(7, (900,), generator=random)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        counts = violations(far, positives, ~positives, 1.2)
    finally:
        torch.set_num_threads(before)
    assert torch.equal(counts, _by_search(far, positives, ~positives, 1.2))


def test_a_row_of_a_transposed_view_is_read_as_it_is():
    far = torch.rand(5, 4).T
    positives = (torch.rand(5, 4) < 0.5).T
    assert torch.equal(violations(far, positives, ~positives, 0.3), definition(far, positives, ~positives, 0.3))


def test_negative_zero_is_zero():
    far = torch.tensor([[-0.0, 0.0], [0.0, -0.0]])
    positives = torch.tensor([[True, False], [False, True]])
    assert not violations(far, positives, ~positives, 0.0).any()


def test_there_is_nothing_to_count_without_rows_or_columns():
    nothing = torch.zeros(3, 0)
    assert violations(nothing, nothing > 0, nothing > 0, 1.0).shape == (3, 0)
    assert violations(nothing.T, nothing.T > 0, nothing.T > 0, 1.0).shape == (0, 3)


@pytest.mark.gpu
def test_is_the_same_on_a_gpu():
    far = torch.rand(300, 200)
    positives = torch.rand(300, 200) < 0.2
    there = violations(far.cuda(), positives.cuda(), ~positives.cuda(), 0.1).cpu()
    assert torch.equal(there, violations(far, positives, ~positives, 0.1))


def test_a_compiler_is_told_the_shape_and_type_of_the_counts():
    with FakeTensorMode():
        far, ones = torch.empty(4, 7, dtype=torch.float64), torch.ones(4, 7, dtype=torch.float64)
        found = kernel.violations(far.T, ones.T, ones.T, 0.5)
        assert (found.shape, found.dtype, found.is_contiguous()) == ((7, 4), torch.float64, True)
