"""The page of the reproduction of the AADML paper."""

from pathlib import Path

import pytest

from aadml.papers import figures
from aadml.papers import page as page_of_paper
from aadml.papers.fidelity import FIDELITY
from aadml.papers.page import _most
from aadml.papers.reproduction_plan import NOTE, ReproductionPlan
from aadml.papers.rows import LEAKS, SELECTION
from aadml.papers.tables import COMPARED, SELECTED
from aadml.reports.published import PAPER
from aadml.reports.tables import Table
from aadml.retrieval.significance import Spread
from aadml.studies.results import CellScores
from aadml.studies.sweep_parts import StudyPart
from tests.papers.planted_scores import group, row, scores
from tests.reports.parsed_html import words


def test_the_leak_with_the_largest_mean_jump_is_named_for_each_table_that_has_jumps():
    columns = ("protocol", "mean jump")
    tables = {
        "table-1-ave": Table(columns, (("no leak", 0.5),)),
        "table-1-ave-leaks": Table(columns, (("legacy:one", 0.25), ("legacy:two", 0.125))),
        "table-3-leaks": Table(columns, ()),
    }
    assert _most(StudyPart("Table 1: methods", "", tables=tables), group([])) == [
        "Table 1 on AVE: the leak legacy:one increases MAP most, by 0.250 on average."
    ]


LOG = ({"epoch": 1, "train loss": 1.0, "train map_mean": 0.5, "valid map_mean": 0.4},)
SCOPE = {10: 0.5, 20: 0.4}


def planted(data_set, draws):
    """Results of a few rows, one of which has no run, with draws of Clock or without."""
    names = {"methods": ("aadml", "paper-r1"), "losses": ("triplet", "aa-triplet")}
    rows = [row(table, name) for table, items in names.items() for name in items]
    further = [row("losses", name, f"{name}-draw1") for name in names["losses"]] if draws else []
    lost, reasons = row("methods", "cca"), {0: "not possible: too wide", 1: "no disk"}
    scored = [(lost, CellScores(lost.cell, {}, reasons))]
    scored += [(of, scores(of, [0.4, 0.5], LOG, SCOPE)) for of in (*rows, *further)]
    leaks = {"aadml": {SELECTION: Spread(0.65, 0.0, 1)}, "triplet": {LEAKS[0]: Spread(0.9, 0.0, 1)}}
    neighbors = {"aa-triplet": {1: rows[-1].cell}}
    return group(scored, draws={1: further} if draws else {}, leaks=leaks, neighbors=neighbors, data_set=data_set)


TABLE_3 = """\
loss|what the row is|MAP audio-visual|MAP visual-audio|MAP mean|published audio-visual|published visual-audio\
|published mean|difference to itself without proxy|seeds
triplet|certified|0.450 ± 0.071|0.450 ± 0.071|0.450 ± 0.071|0.404|0.431|0.418|–|2
aa-triplet|this project's reading (R6)|0.450 ± 0.071|0.450 ± 0.071|0.450 ± 0.071|0.890|0.883|0.887\
|+0.000 [+0.000, +0.000]|(p = 1.000)≈|2
What the rows are
certified|{certified}
this project's reading|{reading}
triplet|Agrees in loss, gradient, training.
Readings of Equation 7
{of_readings}
method|what the row is|MAP audio-visual|MAP visual-audio|MAP mean|difference to aadml|seeds
aadml|{r6}|0.450 ± 0.071|0.450 ± 0.071|0.450 ± 0.071|–|2
paper-r1|{r1}|0.450 ± 0.071|0.450 ± 0.071|0.450 ± 0.071|+0.000 [+0.000, +0.000]|(p = 1.000)≈|2
The same runs under each leak
protocol|mean jump|smallest|largest|largest for|rows
legacy:label-graph|0.450|0.450|0.450|triplet|1
loss|MAP mean|legacy:label-graph
triplet|0.450 ± 0.071|0.900
aa-triplet|0.450 ± 0.071|–
Cost
loss|epochs|steps|seconds|seeds
triplet|3|12|1.5|2
aa-triplet|3|12|1.5|2"""
SUMMARY = f"""\
{NOTE}
AADML on VEGAS, inductive|0.450 ± 0.071|test MAP, mean of both directions
AADML on AVE, inductive|0.450 ± 0.071|test MAP, mean of both directions
runs|20|2 failed, 2 not possible
Table 1 on VEGAS: the leak legacy:test-selection increases MAP most, by 0.200 on average.
Table 1 on AVE: the leak legacy:test-selection increases MAP most, by 0.200 on average.
Table 3 on AVE: the leak legacy:label-graph increases MAP most, by 0.450 on average.
{COMPARED}
a note"""
FIGURE_5 = ["figure-5-vegas-train-loss", "figure-5-vegas-train-map", "figure-5-vegas-valid-map"]


def test_a_reproduction_has_the_parts_of_the_paper_with_their_files_and_a_summary(monkeypatch):
    written = []
    for module in (page_of_paper, figures):
        monkeypatch.setattr(module, "drawn", lambda draw, *given, **options: f"<svg {draw.__name__}/>")
    monkeypatch.setattr(page_of_paper, "write_study", lambda *given: written.append(given) or Path("page"))
    plan = ReproductionPlan(folder=Path("x"), seeds=range(2), confirm=pytest.fail, quick=True)
    groups = {"vegas": planted("vegas", draws=False), "ave": planted("ave", draws=True)}
    parts = ["table-1", "table-3", "figure-3", "figure-4", "figure-5", "clock-draw"]
    tables, path = page_of_paper.write_reproduction(parts, groups, plan, ["a note"])
    ((of_plan, title, kind, summary, shown),) = written
    assert (of_plan, title, kind, path) == (plan, f"{PAPER.title}, reproduced", "Reproduction of a paper", Path("page"))
    assert words(summary) == SUMMARY.replace("|", "\n")
    assert [part.title for part in shown] == [
        f"{PAPER.parts[name].title}{f', on {place}' * several}"
        for name in parts
        for several in [len(PAPER.parts[name].data_sets) == 2]
        for place in (("VEGAS", "AVE") if several else ("AVE",))
    ]
    files = [(*part.tables, *part.numbers, *part.drawings) for part in shown]
    of_table = ("", "-readings", "-leaks", "-leaks")
    assert files[:3] == [
        tuple(f"{name}{end}" for end in of_table) for name in ("table-1-vegas", "table-1-ave", "table-3")
    ]
    assert files[3:8:2] == [
        ("figure-3-vegas", "figure-3-vegas-audio-visual", "figure-3-vegas-visual-audio"),
        ("figure-4-vegas", "figure-4-vegas-map-over-k", "figure-4-vegas-map-over-k-by-reading-of-equation-7"),
        ("figure-5-vegas", *FIGURE_5),
    ]
    assert files[9:] == [("clock-draw",)]
    assert {note for part in shown for note in part.notes[:1]} == {NOTE}
    assert {table.caption.startswith(f"{NOTE} ") for table in tables} == {True}
    assert tables == [table for part in shown for table in part.tables.values()]
    assert shown[0].notes[1:] == ["about", SELECTED, "cca: not possible: too wide", "cca, seed 1, failed: no disk"]
    words_of = [note.split()[:2] for note in shown[2].notes[2:]]
    assert words_of == [["Differences", "of"], ["Two", "seeds"], SELECTED.split()[:2]]
    notes = shown[2].tables["table-3-readings"].notes
    assert [note.split()[:2] for note in notes] == words_of[:2]  # of the own tests of this table
    assert shown[3].notes[2:4] == ["cca: not possible: too wide", "cca, seed 1, failed: no disk"]
    known = {"certified": FIDELITY.kinds["certified"], "reading": FIDELITY.kinds["this project's reading"]}
    readings = {"r6": FIDELITY.readings["aadml"], "r1": FIDELITY.readings["paper-r1"]}
    assert words(shown[2].content) == TABLE_3.format(**known, **readings, of_readings="\n".join(notes)).replace(
        "|", "\n"
    )
    assert "Table 3: losses on AVE, with and without anchor-aware proxies: inductive MAP, MAP under" in shown[2].content
    assert words(shown[9].content).startswith("loss\ndraw 0\ndraw 1\nsd over draws (of means)\nsd over seeds (mean)\n")
    assert [note.partition(".")[0] for note in shown[9].notes[1:2]] == ["MAP mean by draw of Clock"]
    assert len(shown[9].notes) == 3
    assert page_of_paper._part("clock-draw", groups["vegas"]) is None


def test_failures_of_readings_draws_and_figures_are_listed_with_their_reasons(monkeypatch):
    monkeypatch.setattr(page_of_paper, "drawn", lambda draw, *given, **options: "")
    results = planted("ave", draws=True)
    for name in ("paper-r1", "aa-triplet-draw1", "aa-triplet"):
        cell = results.scores[name]
        results.scores[name] = CellScores(cell.cell, {0: cell.runs[0]}, {1: f"no {name}"})
    table = page_of_paper._part("table-3", results)
    assert table.tables["table-3-readings"].notes[-1] == "paper-r1, seed 1, failed: no paper-r1"
    assert "Readings of Equation 7" in words(table.content).partition("paper-r1, seed 1, failed: no paper-r1")[0]
    draws = page_of_paper._part("clock-draw", results)
    assert draws.notes[2:] == [
        "aa-triplet, draw 0, seed 1, failed: no aa-triplet", "aa-triplet, draw 1, seed 1, failed: no aa-triplet-draw1",
    ]  # fmt: skip
    for figure in ("figure-4", "figure-5"):
        assert "aa-triplet, seed 1, failed: no aa-triplet" in page_of_paper._part(figure, results).notes
