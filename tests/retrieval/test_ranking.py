import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from aadml.comparison.relevance import Grouped
from aadml.feature_extraction.ground.errors import InputError
from aadml.retrieval import ranking, scores, sorted_hits
from aadml.retrieval.ranking import over_rankings, rank
from aadml.retrieval.scores import MatrixScores


def groups_by_loops(row, relevant):
    """(above, size, hits above, hits) of each tied group with something relevant, best first."""
    found = []
    for value in sorted(set(row.tolist()), reverse=True):
        group = [r for v, r in zip(row.tolist(), relevant.tolist(), strict=True) if v == value]
        better = [r for v, r in zip(row.tolist(), relevant.tolist(), strict=True) if v > value]
        if any(group):
            found.append((len(better), len(group), sum(better), sum(group)))
    return found


def groups_of(found, i):
    part = slice(found.offsets[i], found.offsets[i + 1])
    columns = (found.above[part], found.size[part], found.hits_above[part], found.hits[part])
    return list(zip(*(column.tolist() for column in columns), strict=True))


def assert_is_the_definition(values, relevant):
    found = rank(values, relevant)
    for i, row in enumerate(values):
        assert groups_of(found, i) == groups_by_loops(row, relevant[i])
        assert found.relevant[i] == relevant[i].sum()
        assert found.tied[i] == sum((row == value).sum() > 1 for value in row)


FLOATS = {
    np.float32: st.one_of(st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5]), st.floats(width=32, allow_nan=False)),
    np.float64: st.one_of(st.sampled_from([0.0, -0.0, 3.0, -1e-9]), st.floats(-1e9, 1e9, allow_subnormal=False)),
}


@pytest.mark.parametrize("kind", FLOATS)
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_groups_are_those_of_the_definition(kind, data):
    shape = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 9))
    values = data.draw(hnp.arrays(kind, shape, elements=FLOATS[kind]))
    values[~np.isfinite(values)] = 7
    relevant = data.draw(hnp.arrays(bool, shape))
    relevant[:, 0] = True
    assert_is_the_definition(values, relevant)


@pytest.mark.parametrize("scale", [1e-42, 1e-30, 1.0, 1.0000001, 1.5, 1.9, 2.0, 1e30])
def test_order_and_ties_hold_at_any_magnitude_of_the_scores(scale):
    generator = np.random.default_rng(0)
    values = (generator.integers(-50, 50, (6, 200)) * np.float32(scale) / 50).astype(np.float32)
    assert_is_the_definition(values, generator.random((6, 200)) < 0.3)


def test_neighbors_in_float32_are_no_ties():
    one = np.float32(1)
    values = np.array([[one, np.nextafter(one, 0, dtype=np.float32), one, np.nextafter(one, 2, dtype=np.float32)]])
    assert groups_of(rank(values, np.array([[True, True, False, True]])), 0) == [
        (0, 1, 0, 1),
        (1, 2, 1, 1),
        (3, 1, 2, 1),
    ]


def test_minus_zero_ties_with_zero():
    found = rank(np.array([[0.0, -0.0, -1.0]], dtype=np.float32), np.array([[True, False, True]]))
    assert groups_of(found, 0) == [(0, 2, 0, 1), (2, 1, 1, 1)]


def test_a_gallery_of_one_item_is_ranked():
    assert groups_of(rank(np.array([[0.3]]), np.array([[True]])), 0) == [(0, 1, 0, 1)]


@pytest.mark.parametrize("share", [0.0, 0.02, 0.07, 0.12, 1.0])
@pytest.mark.parametrize("items", [1, 2, 37, 128])
def test_places_are_the_same_however_many_rows_are_sorted_at_a_time(monkeypatch, items, share):
    generator = np.random.default_rng(items)
    values = generator.integers(-9, 9, (23, items)).astype(np.float32) / 9
    relevant = generator.random((23, items)) < share
    relevant[:, 0] = True
    for sorted_at_once in (1, 3 * items, 1 << 17):
        monkeypatch.setattr(sorted_hits, "SORTED", sorted_at_once)
        assert_is_the_definition(values, relevant)


def test_equal_scores_of_two_queries_are_no_tie():
    values = np.array([[0.5, 0.1], [0.5, 0.1], [0.1, 0.1]], dtype=np.float32)
    assert rank(values, np.ones((3, 2), dtype=bool)).tied.tolist() == [0, 0, 2]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scores_that_are_not_numbers_are_refused(bad):
    with pytest.raises(InputError, match="contain NaN or infinity"):
        rank(np.array([[0.1, bad]], dtype=np.float32), np.array([[True, False]]))


@pytest.fixture
def set_threads():
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def gathered(source, query_groups, gallery_groups):
    def measure(index, found):
        return [(int(i), groups_of(found, n)) for n, i in enumerate(index)]

    parts = over_rankings(source, Grouped(query_groups, gallery_groups), measure)
    return [query for part in parts for query in part]


def test_rankings_are_the_same_whatever_the_blocks_and_threads(monkeypatch, set_threads):
    generator = np.random.default_rng(1)
    source = MatrixScores(generator.integers(0, 9, (300, 40)).astype(np.float32))
    labels = generator.integers(0, 4, 300), generator.integers(0, 4, 40)
    expected = gathered(source, *labels)
    assert [i for i, _ in expected] == list(range(300))
    for block, chunk, threads in ((1, 1, 1), (40 * 128, 100, 3), (40 * 37, 1 << 20, 2)):
        monkeypatch.setattr(scores, "BLOCK", block)
        monkeypatch.setattr(ranking, "CHUNK", chunk)
        set_threads(threads)
        assert gathered(source, *labels) == expected


def test_queries_without_anything_relevant_are_left_out():
    source = MatrixScores(np.random.default_rng(2).random((5, 3)))
    found = gathered(source, np.array([7, 1, 9, 2, -3]), np.array([1, 2, 1]))
    assert [i for i, _ in found] == [1, 3]
    assert gathered(source, np.full(5, 8), np.array([1, 2, 1])) == []


def test_groups_may_be_names():
    source = MatrixScores(np.array([[0.3, 0.2], [0.1, 0.5]]))
    found = gathered(source, np.array(["dog", "cat"]), np.array(["cat", "dog"]))
    assert found == [(0, [(1, 1, 0, 1)]), (1, [(1, 1, 0, 1)])]


def test_threads_of_its_own_leave_those_of_torch_as_they_were(set_threads):
    set_threads(3)
    seen = set()

    def measure(index, found):
        seen.add(torch.get_num_threads())

    source = MatrixScores(np.random.default_rng(3).random((1000, 5)))
    list(over_rankings(source, Grouped(np.zeros(1000), np.zeros(5)), measure))
    assert seen == {1}
    assert torch.get_num_threads() == 3
