from dataclasses import replace
from types import SimpleNamespace

import pytest

from aadml.configuration.config import resolve
from aadml.feature_extraction.ground.errors import InputError
from aadml.reports.tables import Table
from aadml.retrieval.record import EvaluationRecord
from aadml.retrieval.significance import Difference
from aadml.retrieval.summary import RELEVANCE_IN_WORDS
from aadml.studies import sweep_parts
from aadml.studies.ablation_grid import collected, jobs_of
from aadml.studies.execution import Execution
from aadml.studies.grid import Cell, Overrides, cells_of, points
from aadml.studies.results import CellScores
from aadml.studies.sweep import sweep
from aadml.studies.sweep_parts import (
    ResultColumns,
    StudyPart,
    _how_sure,
    data_name,
    describe,
    failures,
    result_tables,
    summary,
    verdict,
    write_study,
)
from tests.papers.planted_scores import row, scores
from tests.reports.parsed_html import words


def test_the_caption_of_runs_that_differ_has_ranges_and_the_notes_of_all(monkeypatch, tmp_path):
    found = {"a": scores(row("methods", "a"), [0.5, 0.5])}  # two seeds, which draw different classes
    cells = {n: SimpleNamespace(name="f/x.h5", notes=["one note", note]) for n, note in enumerate(("second", "other"))}
    environments = [SimpleNamespace(data=cells[n], clips={"train": 9 + n, "test": 3}) for n in range(2)]
    folders = iter(environments)
    monkeypatch.setattr(sweep_parts, "read_environment", lambda folder: next(folders))
    assert describe(found, [0], tmp_path) == (
        "MAP on the test split of x.h5 (9 to 10 train, 3 test clips), protocol inductive, chance 0.100, tie rate at "
        "most 0.000; 1 seed. One note."
    )
    found = {name: scores(row("methods", name), [0.5]) for name in ("a", "b")}
    folders = iter(environments)
    cells[1].name = "g/y.h5"
    assert describe(found, [0], tmp_path).startswith("MAP on the test split of x.h5, y.h5 (9 to 10 train, 3 test clips")
    folders = iter(environments)
    assert data_name(found, tmp_path) == "x.h5, y.h5"
    cells[1].name, folders = "x.h5", iter(environments)
    levels = {"recall@5": 0.25, "recall@9": None}
    monkeypatch.setattr(EvaluationRecord, "chance_of", lambda self, metric: levels[metric])
    for cell in found.values():
        cell.runs[0] = replace(cell.runs[0], record=replace(cell.runs[0].record, relevance="own", tie_rate=0.5))
    assert describe(found, [0], tmp_path, list(levels)).startswith(
        "MAP on the test split of x.h5 (9 to 10 train, 3 test clips), relevance own "
        f"({RELEVANCE_IN_WORDS['own']}), protocol inductive, chance 0.100 (recall@5 0.250), tie rate at most 0.500; 1 s"
    )
    lost = {name: CellScores(cell.cell, {}, {0: f"no {name}", 1: "no disk"}) for name, cell in found.items()}
    with pytest.raises(InputError, match=r": no run finished \(no a\)$"):
        describe(lost, [0], tmp_path)
    (tmp_path / "runs" / "a_seed0").mkdir(parents=True)
    (tmp_path / "runs" / "a_seed0" / "failure.txt").touch()
    with pytest.raises(InputError, match=r": no run finished \(no a\); see failure.txt in the folder of each run"):
        describe(lost, [0], tmp_path)


def test_published_figures_are_shown_where_a_row_has_one():
    columns = ("loss", "MAP mean", "AVE published map")
    rows = (("nt-xent", 0.3, None), ("triplet", 0.4, 0.328))
    assert "Beside the published results" not in result_tables(Table(columns, rows[:1]))
    beside = result_tables(Table(columns, rows)).split("Beside the published results")[1]
    assert "triplet" in beside
    assert "nt-xent" not in beside


def test_a_figure_is_beside_the_cost():
    shown = result_tables(Table(("loss", "MAP mean", "steps"), (("triplet", 0.4, 7),)), figure="<svg></svg>")
    assert shown.index("MAP mean") < shown.index('<div class="drawings"><div><svg>') < shown.index("<h3>Cost</h3>")


@pytest.mark.parametrize(("seeds", "ending"), [((0,), "; 1 seed."), ((0, 1), "; mean ± sd over 2 seeds.")])
def test_the_caption_of_a_study_names_data_protocol_and_seeds(base, tmp_path, seeds, ending):
    cells = cells_of(points(resolve(base), [], Overrides()))
    scores = collected(cells, seeds, tmp_path, list(sweep(jobs_of(cells, seeds, tmp_path), workers=0)))
    caption = describe(scores, seeds, tmp_path)
    assert caption.startswith("MAP on the test split of features.h5 (52 train, 8 valid, 24 test clips), protocol induc")
    assert ending in caption
    assert data_name(scores, tmp_path) == "features.h5"


def test_failed_runs_and_cells_without_runs_leave_empty_columns():
    cell = CellScores(Cell("a", resolve({"method": "cca", "data": "x"})), {}, {3: "no disk"})
    columns = ResultColumns([cell], {"a": cell}, {"method": ["a"]})
    columns.add_figures("map", "MAP")
    columns.add_cost("epochs", "seeds")
    columns.add_published("methods", ["cca"], "AVE")
    table = columns.table("about", notes=failures({"a": cell}))
    assert dict(zip(table.columns, table.rows[0], strict=True)) == {
        "method": "a", "MAP mean": None, "epochs": None, "seeds": 0, "published audio-visual": 0.19,
        "published visual-audio": 0.189, "published mean": 0.19,
    }  # fmt: skip
    assert table.notes == ("a, seed 3, failed: no disk",)


def test_a_verdict_counts_the_differences_of_each_outcome():
    above, equal, open_ = (
        Difference(0.1, 0.01, 0.001, "both", equal=0.9),
        Difference(0.0, 0.01, 0.9, "both", equal=0.01),
        Difference(0.01, 0.01, 0.5, "both", equal=0.5),
    )
    below = replace(above, mean=-0.1)
    nothing = float("nan")
    assert verdict({}, "row") == ""
    assert verdict({"a": below}, "row") == (
        "Of 1 comparison: 0 significantly above, 1 significantly below, 0 equal within ±0.01, 0 undecided."
    )
    assert verdict({"a": Difference(0.1, nothing, nothing, "one seed")}, "row") == (
        "No differences are tested, as no pair has two common finished seeds (1 row was compared)."
    )
    none = Difference(0.1, nothing, nothing, "one seed")
    assert verdict({"a": none, "b": none}, "cell") == (
        "No differences are tested, as no pair has two common finished seeds (2 cells were compared)."
    )
    sure = [above, equal, open_, replace(open_, seeds=2), Difference(0.1, nothing, nothing, "one seed")]
    assert [_how_sure(minus) for minus in sure] == [
        "significant", "within ±0.01", "undecided", "undecided, as two seeds are too few", "not tested",
    ]  # fmt: skip
    assert verdict({"a": above, "b": equal, "c": open_}, "row") == (
        "Of 3 comparisons: 1 significantly above, 0 significantly below, 1 equal within ±0.01, 1 undecided."
    )


def test_a_summary_states_how_sure_the_difference_of_the_best_row_is():
    found = {name: scores(row("methods", name), maps) for name, maps in (("a", [0.5, 0.5]), ("b", [0.6, 0.6]))}
    shown = [words(summary(found, found, {"b": ("b", "a")}, name, ["about"])).splitlines() for name in ("a", None)]
    sure = "significant: +0.100 [+0.100, +0.100] (p < 0.001)*."
    assert [text[0] for text in shown] == [
        f"b scores highest, 6.0 times chance. Its difference to {name} is {sure}" for name in ("a", "its baseline")
    ]
    best, chance, runs = (
        ["best test MAP, mean of both directions", "0.600 ± 0.000", "b"], ["chance", "0.100", "MAP of a random order"],
        ["runs", "4", "2 rows"],
    )  # fmt: skip
    assert shown[1][1:10] == [*best, *chance, *runs]
    assert shown[0][1:13] == [*best, "compared with", "0.500 ± 0.000", "a", *chance, *runs]
    assert shown[0][13:] == [
        "Of 1 comparison: 1 significantly above, 0 significantly below, 0 equal within ±0.01, 0 undecided.", "about",
    ]  # fmt: skip
    alone = words(summary({"a": found["a"]}, found, {}, None, ["about"], what="cell")).splitlines()
    assert (alone[0], alone[-2:]) == ("a scores highest, 5.0 times chance.", ["1 cell", "about"])


@pytest.mark.parametrize("drawing", ["<svg/>", None])
def test_a_study_has_a_page_and_a_file_of_each_table_and_figure(tmp_path, drawing):
    table = Table(("row", "MAP"), (("a", 0.5),), "about")
    part = StudyPart("Part", "<p>content</p>", ("a note",), {"both": table}, {"numbers": table})
    parts = [part, StudyPart("Figures", drawing or "", drawings={"figure": drawing} if drawing else {})]
    execution = Execution(folder=tmp_path, command="aadml ablate --over k=1")
    path = write_study(execution, "Title", "kind", "<p>summary</p>", parts)
    written = {"both.md", "both.csv", "both.tex", "numbers.csv", "report.html"} | ({"figure.svg"} if drawing else set())
    assert {file.name for file in tmp_path.iterdir()} == written
    assert path == tmp_path / "report.html"
    page = path.read_text()
    assert ("<svg" in page, "Figures" in page) == (bool(drawing), bool(drawing))
    places = [page.index(words) for words in ("<p>summary", "a note", "<p>content", "aadml ablate --over k=1")]
    assert places == sorted(places)
