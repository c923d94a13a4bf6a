import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.neighbors import NearestNeighbors

from aadml.proxies import exact_search, exact_sums
from aadml.proxies.exact_search import nearest


def score(query: np.ndarray, row: np.ndarray) -> float:
    product = float((query * row).sum())
    norms = float(np.sqrt((query**2).sum()) * np.sqrt((row**2).sum()))
    return round(product / norms, 12) if norms else 0.0


def by_definition(queries, bank, k, query_codes=None, bank_codes=None) -> list[list[int]]:
    lists = []
    for i, query in enumerate(queries):
        allowed = [j for j in range(len(bank)) if query_codes is None or query_codes[i] != bank_codes[j]]
        ranked = sorted(allowed, key=lambda j, query=query: (-score(query, bank[j]), j))
        lists.append((ranked + [-1] * k)[:k])
    return lists


@st.composite
def searches(draw):
    """Few distinct vectors, many duplicates; blocks, groups and slack small enough for every path to be walked."""
    count, asked, dimension = draw(st.integers(1, 90)), draw(st.integers(1, 12)), draw(st.integers(1, 4))
    seed, spread = draw(st.integers(0, 2**32 - 1)), draw(st.integers(0, 4))
    random = np.random.default_rng(seed)
    bank = random.integers(-spread, spread + 1, (count, dimension)).astype(float)
    queries = random.integers(-spread, spread + 1, (asked, dimension)).astype(float)
    codes = random.integers(0, draw(st.integers(1, 40)), count), random.integers(0, 40, asked)
    return {
        "bank": bank,
        "queries": queries,
        "codes": codes if draw(st.booleans()) else None,
        "k": draw(st.integers(1, 9)),
        "narrow": draw(st.sampled_from([-1000, 1024])),
        "slack": draw(st.sampled_from([0, 1, 8])),
        "block": draw(st.sampled_from([1, 300, 2**19])),
        "threads": draw(st.sampled_from([0, 1 << 20])),
    }


@pytest.mark.slow
@given(searches())
@settings(max_examples=150, deadline=None)
def test_equals_the_definition_with_ties_duplicates_and_exclusions(case):
    bank_codes, query_codes = case["codes"] or (None, None)
    with pytest.MonkeyPatch.context() as patch:
        for bound in ("NARROW", "WIDE"):
            patch.setattr(exact_search, bound, case["narrow"])
        patch.setattr(exact_search, "SLACK_ITEMS", case["slack"])
        patch.setattr(exact_search, "SLACK_GROUPS", min(case["slack"], 2))
        patch.setattr(exact_search, "THREADS", case["threads"])
        patch.setattr(exact_sums, "BLOCK", {"cpu": case["block"]})
        index, value = nearest(
            [torch.from_numpy(case["queries"]).float()],
            [torch.from_numpy(case["bank"]).float()],
            k=case["k"],
            query_codes=None if query_codes is None else torch.from_numpy(query_codes),
            bank_codes=None if bank_codes is None else torch.from_numpy(bank_codes),
            excluded=0 if bank_codes is None else int(np.unique(bank_codes, return_counts=True)[1].max()),
        )
    expected = by_definition(case["queries"], case["bank"], case["k"], query_codes, bank_codes)
    assert index.tolist() == expected
    assert bool(((value == -torch.inf) == (index < 0)).all())


@pytest.mark.parametrize("dimension", [3, 16, 130])
def test_equals_scikit_learn_on_vectors_without_ties(dimension):
    random = np.random.default_rng(dimension)
    bank, queries = random.normal(size=(3000, dimension)) + 1, random.normal(size=(200, dimension))
    oracle = NearestNeighbors(n_neighbors=7, algorithm="brute", metric="cosine").fit(bank)
    index, _ = nearest([torch.from_numpy(queries)], [torch.from_numpy(bank)], k=7)
    assert np.array_equal(index.numpy(), oracle.kneighbors(queries, return_distance=False))


@pytest.mark.parametrize("threads", [0, 1 << 20])
def test_the_largest_values_of_a_row_are_in_order_and_in_distinct_columns(monkeypatch, threads):
    monkeypatch.setattr(exact_search, "THREADS", threads)
    values = torch.randint(6, (50, 40), generator=torch.Generator().manual_seed(0)).float()
    top, columns = exact_search._top(values.T.contiguous().T, 9)
    assert torch.equal(top, values.sort(1, descending=True).values[:, :9])
    assert torch.equal(values.gather(1, columns), top)
    assert all(len(set(row)) == 9 for row in columns.tolist())


def test_a_collapsed_bank_gives_the_first_rows():
    bank = torch.full((5000, 8), 0.3)
    codes = torch.arange(5000)
    index, value = nearest([bank[:6]], [bank], k=3, query_codes=codes[:6], bank_codes=codes, excluded=1)
    assert index.tolist() == [[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2], [0, 1, 2], [0, 1, 2]]
    assert bool((value == 1).all())


def test_near_ties_that_float32_cannot_tell_apart_are_ranked_rightly():
    angles = torch.linspace(0, 1e-6, 3000, dtype=torch.float64).flip(0)
    bank = torch.stack([angles.cos(), angles.sin()], 1)
    index, _ = nearest([torch.tensor([[0.0, 1.0]], dtype=torch.float64)], [bank], k=4)
    assert index.tolist() == [[0, 1, 2, 3]]  # float32 products of neighbors in the list are often equal


def test_blocks_change_nothing(monkeypatch):
    bank = torch.randn(2500, 12, generator=torch.Generator().manual_seed(0))
    whole = nearest([bank], [bank], k=4)
    monkeypatch.setattr(exact_sums, "BLOCK", {"cpu": 1})
    monkeypatch.setattr(exact_search, "COLUMNS", 64)
    pieces = nearest([bank[:99]], [bank], k=4)
    assert torch.equal(pieces[0], whole[0][:99])
    assert torch.equal(pieces[1], whole[1][:99])


@pytest.mark.parametrize("noise", [1e-2, 1e-4, 1e-6, 1e-8])
def test_a_class_gathered_around_its_one_hot_is_ranked_rightly(noise):
    bank = torch.zeros(1500, 10, dtype=torch.float64)
    bank[:, 3] = 1
    bank += noise * torch.randn(1500, 10, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    index, _ = nearest([bank[:5]], [bank], k=3)
    assert index.tolist() == by_definition(bank[:5].numpy(), bank.numpy(), 3)


@pytest.mark.parametrize("dimension", [1, 7, 16, 33, 100])
@pytest.mark.parametrize("count", [999, 5003])
def test_equal_vectors_are_ties_wherever_they_stand(dimension, count):
    generator = torch.Generator().manual_seed(dimension)
    distinct = torch.randn(300, dimension, generator=generator)
    kind = torch.randint(300, (count,), generator=generator)
    index, value = nearest([distinct], [distinct[kind]], k=2)
    for i in range(300):
        copies = (kind == i).nonzero()[:2, 0].tolist()
        if dimension > 1 and len(copies) == 2:
            assert index[i].tolist() == copies
            assert value[i, 0] == value[i, 1]
    if dimension == 1:  # every vector of the same sign is a tie
        assert index[0].tolist() == (distinct[kind, 0] * distinct[0, 0] > 0).nonzero()[:2, 0].tolist()


def test_an_outlier_of_great_length_hides_nobody():
    bank = torch.randn(3000, 10, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    bank[17] *= 1e6
    index, _ = nearest([bank[:40]], [bank], k=3)
    assert index.tolist() == by_definition(bank[:40].numpy(), bank.numpy(), 3)


def test_empty_sides_give_empty_lists():
    index, value = nearest([torch.zeros(0, 3)], [torch.ones(5, 3)], k=2)
    assert index.shape == value.shape == (0, 2)
    index, _ = nearest([torch.ones(2, 3)], [torch.ones(0, 3)], k=2)
    assert index.tolist() == [[-1, -1], [-1, -1]]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_error_bound_is_the_worst_case_where_that_is_smaller(dtype):
    unit = torch.finfo(dtype).eps / 2
    for dimension in (1, 2, 9, 64):
        assert exact_search.unit_error(dimension, dtype, torch.device("cpu")) == unit * (dimension + 3)
    assert exact_search.unit_error(10_000, dtype, torch.device("cpu")) == unit * 803


def test_reduced_precision_products_widen_the_error_bound(monkeypatch):
    cpu, gpu = torch.device("cpu"), torch.device("cuda")
    single, double = (exact_search.unit_error(16, dtype, gpu) for dtype in (torch.float32, torch.float64))
    monkeypatch.setattr(torch, "get_float32_matmul_precision", lambda: "high")
    assert exact_search.unit_error(16, torch.float32, gpu) == single * 2**14
    assert exact_search.unit_error(16, torch.float64, gpu) == double
    assert exact_search.unit_error(16, torch.float32, cpu) == single


def test_where_the_order_is_clear_and_where_it_is_not_the_lists_are_those_of_float64():
    random = torch.Generator().manual_seed(4)
    bank = torch.randn(400, 96, generator=random)
    bank[200:] = bank[:200] + 1e-6 * torch.randn(200, 96, generator=random)  # half of all pairs are in doubt
    index, score = nearest([bank[:250]], [bank], k=5, query_codes=torch.arange(250),
                           bank_codes=torch.arange(400), excluded=1)  # fmt: skip
    x = bank.double()
    products = x @ x.T
    norms = x.square().sum(1)
    expected = (products / norms.sqrt()[:, None] / norms.sqrt()[None, :]).fill_diagonal_(-torch.inf)
    best, order = expected[:250].topk(5, 1)
    assert torch.equal(index, order)
    assert torch.allclose(score, best, rtol=1e-9, atol=1e-9)
