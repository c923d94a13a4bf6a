"""Tables of a comparison on planted scores."""

from dataclasses import replace

import pytest

from aadml.studies.comparison_page import proxy_table, table_of
from tests.papers.planted_scores import row, scores


def test_rows_are_compared_with_the_reference_where_there_is_one():
    rows = [row("methods", "aadml"), row("methods", "cca")]
    found = {of.cell.name: scores(of, maps) for of, maps in zip(rows, [[0.5, 0.6], [0.3, 0.3]], strict=True)}
    table = table_of(rows, found, rows[0], "about")
    words = [line[table.columns.index("difference to aadml")] for line in table.rows]
    assert words[0] == ""
    assert words[1].startswith("-0.250 [")
    alone = table_of(rows, found, None, "about")
    assert [name for name in table.columns if name not in alone.columns] == ["difference to aadml"]
    assert [cell.mean for cell in (line[alone.columns.index("MAP mean")] for line in alone.rows)] == [
        pytest.approx(0.55), pytest.approx(0.3),
    ]  # fmt: skip


def test_a_row_with_a_proxy_is_compared_with_each_of_its_controls():
    plain, proxied = row("losses", "triplet"), row("losses", "aa-triplet")
    controls = [replace(row("losses", "aa-triplet", f"aa-triplet-{name}"), control=name) for name in ("one", "two")]
    rows = [plain, proxied, *controls]
    maps = [[0.4, 0.5], [0.6, 0.7], [0.5, 0.6], [0.8, 0.9]]
    found = {of.cell.name: scores(of, values) for of, values in zip(rows, maps, strict=True)}
    table = proxy_table(rows, found, "about")
    assert [line[0] for line in table.rows] == ["aa-triplet"]
    differences = dict(zip(table.columns, table.rows[0], strict=True))
    starts = [str(value)[:6] for name, value in differences.items() if name.startswith("minus ")]
    assert starts == ["+0.200", "+0.100", "-0.200"]  # itself without the proxy, and the two controls
    assert proxy_table(rows[:2], found, "about") is None
