import math

import pytest

from aadml.configuration.config import resolve
from aadml.papers.rows import LEAKS
from aadml.papers.tables import draw_table, leak_table, leaks_of, paper_table
from aadml.reports.published import PAPER
from aadml.retrieval.significance import Spread
from aadml.studies.ablation_grid import collected, run_folder
from aadml.studies.grid import Cell
from aadml.studies.job import Job, work_off
from aadml.studies.results import CellScores
from aadml.studies.sweep import SweepOutcome
from tests.papers.planted_scores import group, row, scores


@pytest.mark.parametrize("name", ["k--1_seed0", "k=1_seed=0"], ids=["this edition", "second edition"])
def test_leaks_of_runs_are_read_from_folders_of_both_editions(base, tmp_path, name):
    cell = Cell("k=1", resolve(base))
    (tmp_path / "runs" / name).mkdir(parents=True)
    job = Job(run_folder(tmp_path, cell, 0), cell.config.seeded(0), protocols=("legacy:partner",))
    assert job.folder.name == name
    job.folder.rmdir()
    assert work_off(job) == ""
    scores = collected([cell], [0], tmp_path, [SweepOutcome(job)])
    leaks = leaks_of(scores, [job], tmp_path)
    assert leaks["k=1"].keys() == {"legacy:partner"}


def column(table, name):
    return [line[table.columns.index(name)] for line in table.rows]


def test_methods_are_compared_with_aadml_and_losses_with_themselves_without_a_proxy():
    rows = [row("methods", "aadml"), row("methods", "cca"), row("methods", "clip", "aadml")]
    leak = Spread(0.9, 0.0, 1)
    scored = [(rows[0], scores(rows[0], [0.5, 0.6])), (rows[1], scores(rows[1], [0.3, 0.3]))]
    table = paper_table(rows, group(scored, leaks={"aadml": {LEAKS[0]: leak}}), {"cca": "certified"})
    assert {name: column(table, name) for name in LEAKS} == {
        name: [leak, None, leak] if name == LEAKS[0] else [None] * 3 for name in LEAKS
    }
    assert column(table, "what the row is") == [None, "certified", None]
    assert column(table, "method") == ["aadml", "cca", "clip"]
    assert [cell.mean for cell in column(table, "MAP mean")] == pytest.approx([0.55, 0.3, 0.55])
    words = column(table, "difference to aadml")
    assert words[0] is words[2] is None  # a row of the same runs
    assert words[1].startswith("-0.250 [")
    rows = [row("losses", name) for name in ("triplet", "aa-triplet", "aa-ce")]
    found = group([(one, scores(one, maps)) for one, maps in zip(rows, [[0.4], [0.5], [0.6]], strict=True)])
    words = column(paper_table(rows, found, {}), "difference to itself without proxy")
    assert words[0] is words[2] is None
    assert words[1].startswith("+0.100 ")


def test_the_jump_of_a_leak_is_its_map_minus_the_inductive_one():
    rows = [row("methods", name) for name in ("aadml", "cca", "clip")]
    scored = [(one, scores(one, maps)) for one, maps in zip(rows, [[0.5], [0.3], []], strict=True)]
    small, large = LEAKS[:2]
    leaks = {
        "aadml": {small: Spread(0.61, 0.0, 1), large: Spread(0.4876, 0.0, 1)},
        "cca": {small: Spread(0.29, 0.0, 1), large: Spread(0.3, 0.0, 1)},
        "clip": {large: Spread(0.9, 0.0, 1)},  # without runs of its own
    }
    table = leak_table("Table 1", rows, group(scored, leaks=leaks))
    assert table.columns == ("protocol", "mean jump", "smallest", "largest", "largest for", "rows")
    assert table.rows == ((small, 0.05, -0.01, 0.11, "aadml", 2), (large, -0.006, -0.012, 0.0, "cca", 2))
    assert table.caption == "MAP under each leak minus inductive MAP: Table 1. about"


def test_draws_have_a_column_each_and_their_spread():
    first, second = PAPER.drawn_losses[:2]
    tabled = [row("losses", first), row("losses", second), row("losses", "not drawn")]
    further = [row("losses", name, f"{name}-draw3") for name in (first, second)]
    maps = {first: [0.4, 0.6], second: [0.2], "not drawn": [0.9], f"{first}-draw3": [0.7, 0.9], f"{second}-draw3": []}
    scored = [(one, scores(one, maps[one.cell.name])) for one in (*tabled, *further)]
    table = draw_table(group(scored, draws={3: further}))
    assert table.caption == "MAP mean by draw of Clock. about draws"
    assert column(table, "loss") == [first, second]
    assert column(table, "draw 0") == [
        Spread(0.5, pytest.approx(0.02**0.5), 2),
        Spread(0.2, pytest.approx(math.nan, nan_ok=True), 1),
    ]
    assert column(table, "draw 3") == [Spread(0.8, pytest.approx(0.02**0.5), 2), None]
    assert column(table, "sd over draws (of means)") == [pytest.approx(0.3 / 2**0.5), None]
    assert column(table, "sd over seeds (mean)") == [pytest.approx(0.02**0.5), None]
    assert group(scored[:3]).runs.all_draws == {}


def test_a_row_that_is_not_possible_says_why():
    rows = [row("methods", name) for name in ("aadml", "cca")]
    lost = CellScores(rows[1].cell, {}, {0: "not possible: too wide", 1: "not possible: too wide"})
    table = paper_table(rows, group([(rows[0], scores(rows[0], [0.5])), (rows[1], lost)]), {"cca": "certified"})
    assert column(table, "what the row is") == [None, "not possible: too wide"]
    assert [note for note in table.notes if "too wide" in note] == ["cca: not possible: too wide"]
