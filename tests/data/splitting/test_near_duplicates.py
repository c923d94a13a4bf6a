import pytest
import torch

from aadml.comparison.stored_rows import StoredRows
from aadml.data.splitting.near_duplicates import _to_another, near_duplicates, usual_distance


def drawn(n, d, seed):
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("noise", [0.0, 1e-6, 1e-4, 1e-3])
def test_planted_rows_are_found_with_their_origin(noise):
    known, rows = drawn(200, 32, 0), drawn(60, 32, 1)
    planted = known[10:20] + noise * drawn(10, 32, 2)
    found = near_duplicates(torch.cat([rows, planted]), known)
    assert sorted((i, j) for i, j, _ in found) == [(60 + i, 10 + i) for i in range(10)]
    assert all(0 <= distance <= 0.15 for _, _, distance in found)


def test_of_a_large_set_few_rows_say_what_is_usual(monkeypatch):
    rows, known = drawn(60, 32, 1), drawn(2000, 32, 0)
    expected = near_duplicates(torch.cat([rows, known[:20] + 1e-3 * drawn(20, 32, 2)]), known)
    monkeypatch.setattr("aadml.data.splitting.near_duplicates._DISTANCES", 1)
    asked = []
    monkeypatch.setattr(
        "aadml.data.splitting.near_duplicates._to_another",
        lambda rows, *given: asked.append(len(rows)) or _to_another(rows, *given),
    )
    found = near_duplicates(torch.cat([rows, known[:20] + 1e-3 * drawn(20, 32, 2)]), known)
    assert asked == [100]
    assert [pair[:2] for pair in found] == [pair[:2] for pair in expected]
    assert [pair[2] for pair in found] == pytest.approx([pair[2] for pair in expected], rel=0.1)


def test_rows_that_are_merely_alike_are_not():
    assert near_duplicates(drawn(300, 16, 3), drawn(300, 16, 4)) == []


def test_large_columns_and_far_origins_hide_nothing():
    scale = torch.logspace(-3, 6, 24)
    known = 1e3 + drawn(100, 24, 5) * scale
    found = near_duplicates(known[:5] + 1e-5 * scale, known)
    assert [(i, j) for i, j, _ in sorted(found)] == [(i, i) for i in range(5)]


def test_sets_of_equal_rows_and_empty_sets_do_not_fail():
    same = torch.ones(5, 3)
    assert [pair[2] for pair in near_duplicates(same, same)] == [0.0] * 5
    assert near_duplicates(same[:0], same) == near_duplicates(same, same[:0]) == []


@pytest.mark.parametrize(("scale", "shift"), [(1.0, 0.0), (1000.0, 7.0)])
def test_the_usual_distance_is_the_median_distance_to_the_nearest_other_row(scale, shift):
    rows = scale * torch.randn(41, 5, generator=torch.Generator().manual_seed(3)).double() + shift
    doubled = torch.cat([rows, rows])  # a row that is equal is not another one
    apart = torch.cdist(rows, rows).fill_diagonal_(float("inf")).amin(1)
    stored = StoredRows.of(rows.numpy())
    assert usual_distance(stored) == pytest.approx(float(apart.median()), rel=1e-4)
    assert usual_distance(StoredRows.of(doubled.numpy())) == pytest.approx(float(apart.median()), rel=1e-4)
    assert usual_distance(stored.select(torch.arange(1))) == 0


def test_the_usual_distance_of_many_rows_is_that_of_a_thousand(monkeypatch):
    rows = StoredRows.of(drawn(1500, 4, 0).numpy())
    every = [usual_distance(rows)]
    for limit in (150_000 - 1, 225_000, 1_500_000, 10**9):
        monkeypatch.setattr("aadml.data.splitting.near_duplicates._DISTANCES", limit)
        every.append(usual_distance(rows))
    assert every == pytest.approx([0.37841389, 0.38161266, 0.36747551, 0.37841389, 0.37841389], rel=1e-5)
