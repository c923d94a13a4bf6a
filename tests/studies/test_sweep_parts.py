import pytest

from aadml.configuration.config import resolve
from aadml.reports.tables import Table
from aadml.retrieval.significance import Difference
from aadml.studies.ablation_grid import collected, jobs_of
from aadml.studies.execution import Execution
from aadml.studies.grid import Cell, Overrides, cells_of, points
from aadml.studies.results import CellScores
from aadml.studies.sweep import sweep
from aadml.studies.sweep_parts import (
    ResultColumns,
    StudyPart,
    data_name,
    describe,
    failures,
    result_tables,
    verdict,
    write_study,
)


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
    assert verdict({}, "row") == ""
    assert verdict({"a": above, "b": equal, "c": open_}, "row") == (
        "Of 3 comparisons: 1 significantly above, 0 significantly below, 1 equal within ±0.01, 1 undecided."
    )


@pytest.mark.parametrize("drawing", ["<svg/>", None])
def test_a_study_has_a_file_of_each_table_and_figure_and_a_page_where_it_has_figures(tmp_path, drawing):
    table = Table(("row", "MAP"), (("a", 0.5),), "about")
    part = StudyPart("Part", "<p>content</p>", ("a note",), {"both": table}, {"numbers": table})
    parts = [part, StudyPart("Figures", "", drawings={"figure": drawing} if drawing else {})]
    execution = Execution(folder=tmp_path, command="aadml ablate --over k=1")
    path = write_study(execution, "Title", "kind", "<p>summary</p>", parts)
    figures = {"figure.svg", "report.html"} if drawing else set()
    assert {file.name for file in tmp_path.iterdir()} == {"both.md", "both.csv", "both.tex", "numbers.csv"} | figures
    assert path == (tmp_path / "report.html" if drawing else None)
    path = write_study(execution, "Title", "kind", "<p>summary</p>", parts, with_figures=False)
    page = path.read_text()
    places = [page.index(words) for words in ("<p>summary", "a note", "<p>content", "aadml ablate --over k=1")]
    assert places == sorted(places)
