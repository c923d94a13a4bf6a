"""The table, the figures and the page of an ablation, on planted scores."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from aadml.configuration.config import resolve
from aadml.configuration.from_arguments import assemble
from aadml.reports.tables import markdown
from aadml.studies import ablation_page
from aadml.studies.ablation_grid import Ablation, plan_ablation
from aadml.studies.execution import Execution
from aadml.studies.grid import Axis, Cell, Overrides, parse_axis
from aadml.studies.results import CellScores
from aadml.studies.sweep_figures import Band
from tests.papers.planted_scores import scores
from tests.reports.parsed_html import words

TABLE = """\
MAP on the test split of ave.h5 (9 train, 3 test clips), protocol inductive, chance 0.100, tie rate at most 0.000; \
mean ± sd over 2 seeds. A note on the data.

| proxy.k | loss | MAP audio-visual | MAP visual-audio | MAP mean | difference to | difference | recall@5 audio-visual \
| recall@5 visual-audio | recall@5 mean | train MAP | epochs | steps | seeds |
| --- | --- | ---: | ---: | ---: | --- | --- | --- | --- | --- | ---: | ---: | ---: | ---: |
| 2 | aa-triplet | 0.110 ± 0.014 | 0.110 ± 0.014 | 0.110 ± 0.014 | loss=triplet | -0.440 [-1.000, +1.000] (p = 0.173) \
| – | – | – | 0.700 ± 0.000 | 3 | 12 | 2 |
| 2 | aa-hinge | – | – | – | loss=hinge |  | – | – | – | – | – | – | 0 |
| 1 | aa-triplet | 0.330 ± 0.042 | 0.330 ± 0.042 | 0.330 ± 0.042 | loss=triplet \
| -0.220 [-0.984, +0.544] (p = 0.173) | – | – | – | 0.700 ± 0.000 | 3 | 12 | 2 |
| 1 | aa-hinge | 0.440 ± 0.057 | 0.440 ± 0.057 | 0.440 ± 0.057 | loss=hinge | -0.220 [-0.984, +0.544] (p = 0.173) \
| – | – | – | 0.700 ± 0.000 | 3 | 12 | 2 |
| – | triplet | 0.550 ± 0.071 | 0.550 ± 0.071 | 0.550 ± 0.071 |  |  | – | – | – | 0.700 ± 0.000 | 3 | 12 | 2 |
| – | hinge | 0.660 ± 0.085 | 0.660 ± 0.085 | **0.660 ± 0.085** |  |  | – | – | – | 0.700 ± 0.000 | 3 | 12 | 2 |
"""
SUMMARY = """\
loss=hinge scores highest, 6.6 times chance.
best test MAP, mean of both directions|0.660 ± 0.085|loss=hinge
chance|0.100|MAP of a random order
runs|10|6 cells, 2 runs failed
Of 3 comparisons: 0 significantly above, 0 significantly below, 0 equal within ±0.01, 3 undecided.
"""
LOST = ["proxy.k=2_loss=aa-hinge, seed 0, failed: no disk", "proxy.k=2_loss=aa-hinge, seed 1, failed: no disk"]


@pytest.fixture
def written(monkeypatch, of_ave):
    """Write an ablation over `axes` with rising scores and one cell that failed; return its parts and its figures."""
    drawings, pages = [], []

    def drawn(draw, *given, **labels):
        drawings.append((draw.__name__, *map(plain, given), labels))
        return f"<svg {draw.__name__}/>"

    monkeypatch.setattr(ablation_page, "drawn", drawn)
    monkeypatch.setattr(
        ablation_page, "write_study", lambda *given, **more: pages.append((*given, more)) or Path("page")
    )

    def write(*axes, lost=1, baseline=None, **changed):
        changed = Overrides({"training.epochs": 2, **changed})
        ablation = plan_ablation(assemble(data="folder/ave.h5"), [*map(parse_axis, axes)], range(2), baseline, changed)
        found = {}
        for n, cell in enumerate(ablation.cells):
            log = [{"epoch": epoch, "loss": n / epoch, "valid map_mean": n * epoch / 10} for epoch in (1, 2)]
            maps, of = [0.1 + 0.1 * n, 0.12 + 0.12 * n], SimpleNamespace(cell=cell)
            found[cell.name] = scores(of, maps, log, {10: 0.5, 20: 0.4})
            if n == lost:
                found[cell.name] = CellScores(cell, {}, dict.fromkeys((0, 1), "no disk"))
        table, page = ablation_page.write_ablation(ablation, found, Execution(folder=Path("x")), ["recall@5"])
        assert page == Path("page")
        return table, pages.pop(), drawings

    return write


def plain(value):
    """Bands as (x, y, color, dashed)."""
    if isinstance(value, Band):
        return list(value.x), value.y.round(6).tolist(), value.color, value.dashed
    return {key: plain(one) for key, one in value.items()} if isinstance(value, dict) else value


def test_an_ablation_over_numbers_in_full(written):
    table, (_, title, kind, head, parts, more), drawings = written("proxy.k=2,1", "loss=aa-triplet,aa-hinge")
    body, _, notes = markdown(table).partition("\n- Differences")
    assert body == TABLE
    assert notes.splitlines()[2:] == [f"- {note}" for note in LOST]
    assert (title, kind) == ("ave.h5: ablation of proxy.k, loss", "Ablation")
    assert words(head).startswith(SUMMARY.replace("|", "\n"))
    titles = ["Scores", "Table", "Training", "Scope"]
    assert [(part.title, list(part.tables), list(part.drawings)) for part in parts] == [
        (titles[0], [], ["curve", "differences"]), (titles[1], ["results"], []),
        (titles[2], [], ["training-loss", "validation-map"]),
        (titles[3], [], ["precision-k-audio-visual", "precision-k-visual-audio"]),
    ]  # fmt: skip
    assert (more["ending"].title, more["ending"].notes) == (
        "How the study was made", ["Seeds 0, 1. Every run is a folder in runs/."],
    )  # fmt: skip
    assert words(more["ending"].content).startswith("config of the first cell\nmethod:\n")
    assert words(parts[1].content).startswith("proxy.k\nloss\nMAP audio-visual\n")
    assert words(parts[1].content).count("\nCost\nproxy.k\nloss\nepochs\nsteps\nseeds\n2\naa-triplet\n3\n12\n2\n") == 1
    curve, minus, *others = drawings
    assert curve == (
        "spread_curve",
        {
            "aa-triplet": ([1.0, 2.0], [[0.3, 0.1], [0.36, 0.12]], 0, False),
            "aa-hinge": ([1.0], [[0.4], [0.48]], 1, False),
        },
        {"triplet": ([0], [[0.5], [0.6]], 0, False), "hinge": ([0], [[0.6], [0.72]], 1, False)},
        {"x": "proxy.k", "y": "MAP, mean of both directions", "note": "chance 0.100"},
    )
    name, lines, labels = minus
    assert (name, labels) == ("difference_curve", {"x": "proxy.k", "y": "MAP minus baseline"})
    assert lines == {
        "aa-triplet": [pytest.approx((2, -0.44, 0.04)), pytest.approx((1, -0.22, 0.02))],
        "aa-hinge": [pytest.approx((1, -0.22, 0.02))],
    }
    shown = {
        "proxy.k=1_loss=aa-triplet": (2, 0),
        "loss=triplet": (4, 0),
        "proxy.k=1_loss=aa-hinge": (3, 1),
        "loss=hinge": (5, 1),
    }
    ys = {"training loss": (1, 0.5), "validation MAP": (0.1, 0.2)}
    assert others[:2] == [
        ("bands_over",
         {name: ([1, 2], [[round(n * a, 6), round(n * b, 6)]] * 2, color, "proxy" not in name)
          for name, (n, color) in shown.items()},
         {"x": "epoch", "y": y})
        for y, (a, b) in ys.items()
    ]  # fmt: skip
    scope = {name: ([10, 20], [[0.5, 0.4]] * 2, color, "proxy" not in name) for name, (_, color) in shown.items()}
    assert others[2:] == [
        ("bands_over", scope, {"x": "K", "y": f"precision@K, {name}"}) for name in ("audio-visual", "visual-audio")
    ]


def test_an_ablation_over_names_has_a_row_of_dots_for_each_cell_and_is_compared_with_the_first(written):
    table, (_, _, _, head, parts, _), drawings = written("label_loss=ce,row-norm,mse", "loss=triplet", lost=9)
    assert table.columns[:7] == (
        "label_loss", "loss", "MAP audio-visual", "MAP visual-audio", "MAP mean", "difference to", "difference",
    )  # fmt: skip
    first = "label_loss=ce_loss=triplet"
    assert [row[5] for row in table.rows] == ["", first, first]
    assert f"compared with\n0.110 ± 0.014\n{first}" in words(head)
    assert [list(part.drawings) for part in parts[:2]] == [["curve"], []]
    assert [(name, list(cells)) for name, cells, _ in drawings[:1]] == [
        ("draw_dots", [f"label_loss={name}_loss=triplet" for name in ("ce", "row-norm", "mse")])
    ]


def test_cells_of_several_losses_have_a_column_of_their_loss_and_without_baselines_none_of_differences(written):
    table, _, _ = written("proxy.k=2,1", lost=9)
    assert table.columns[:2] == ("loss", "proxy.k")
    assert [row[:2] for row in table.rows] == [("aa-triplet", "2"), ("aa-triplet", "1"), ("triplet", None)]
    table, (_, _, _, head, parts, _), drawings = written("proxy.k=2,1", lost=9, baseline=Overrides())
    assert table.columns[:5] == ("proxy.k", "MAP audio-visual", "MAP visual-audio", "MAP mean", "recall@5 audio-visual")
    assert list(parts[0].drawings) == ["curve"]
    assert "comparison" not in words(head)
    assert [name for name, *_ in drawings if "curve" in name] == ["spread_curve", "difference_curve", "spread_curve"]


def test_a_loss_has_the_prefix_of_the_proxy_that_all_cells_have(written):
    table, _, _ = written("loss=aa-triplet,aa-hard-triplet,contrastive", lost=9, proxy="class-mean")
    assert [row[0] for row in table.rows] == [
        "class-mean-triplet", "class-mean-hard-triplet", "class-mean-contrastive", "triplet", "hard-triplet",
        "contrastive",
    ]  # fmt: skip
    *_, drawings = written("loss=aa-triplet", "training.batch=10,20", lost=9, proxy="class-mean")
    assert [list(drawing[1]) for drawing in drawings if drawing[0] == "spread_curve"] == [
        ["class-mean-triplet", "triplet"]
    ]


def test_the_axis_of_a_figure_is_the_first_with_several_numbers():
    axes = tuple(Axis(name, values) for name, values in
                 {"a": (1,), "b": (True, False), "c": (1, "x"), "d": (1, 2.5), "e": (3, 4)}.items())  # fmt: skip
    assert ablation_page._axis_of_numbers(Ablation(axes, (), {}, ())) is axes[3]
    assert ablation_page._axis_of_numbers(Ablation(axes[:3], (), {}, ())) is None


def test_a_line_is_named_by_the_other_values_of_its_cells_or_by_their_loss():
    def line(values, *others):
        cells = [
            Cell(method, resolve({"method": method, "data": "x"}), Overrides(values)) for method in ("cca", *others)
        ]
        return ablation_page._line_name(Ablation((), tuple(cells), {}, (0,)), cells[0], "proxy.k")

    assert line({"proxy.k": 1, "label_loss": "ce", "loss": None, "training.batch": 9}) == "ce, 9"
    assert line({"proxy.k": 1}) == line({"loss": None}) == "cca"
    assert line({"proxy.k": 1, "training.batch": 9}, "dcca") == "cca, 9"  # not the line of the other method


def test_baselines_with_the_settings_of_their_cells_have_their_loss_instead_of_a_checksum(written):
    table, (_, _, _, head, _, _), drawings = written("training.batch=10,20", lost=1)
    titles = [f"{loss}, training.batch={batch}" for loss in ("aa-triplet", "triplet") for batch in (10, 20)]
    assert [row[5] for row in table.rows] == [*titles[2:], "", ""]
    assert words(head).startswith(f"{titles[3]} scores highest")
    assert f"{titles[1]}, seed 0, failed: no disk" in table.notes
    assert list(drawings[-1][1]) == [titles[0], titles[2]]
    table, (_, _, _, head, _, _), _ = written("loss=triplet,hinge", lost=1, proxy="class-mean")
    assert [row[4] for row in table.rows] == ["loss=triplet", "loss=hinge", "", ""]
    assert words(head).startswith("loss=hinge scores highest")
    assert "loss=class-mean-hinge, seed 0, failed: no disk" in table.notes


def test_cells_with_equal_titles_keep_their_names():
    config = resolve({"method": "cca", "data": "x"})
    cells = tuple(Cell(name, config, Overrides()) for name in ("a", "b"))
    assert ablation_page._titles(Ablation((), cells, {}, (0,))) == {"a": "a", "b": "b"}
    assert ablation_page._titles(Ablation((), cells[:1], {}, (0,))) == {"a": "cca"}


@pytest.mark.parametrize(("cutoffs", "drawn"), [(1, False), (2, True), (3, True)])
def test_precision_over_k_is_drawn_where_it_is_a_line(monkeypatch, cutoffs, drawn):
    cell = Cell("a", resolve({"method": "cca", "data": "x"}), Overrides())
    band = Band(list(range(cutoffs)), np.zeros((1, cutoffs)))
    monkeypatch.setattr(ablation_page.sweep_figures, "scope_band", lambda *_, **__: band)
    monkeypatch.setattr(ablation_page.sweep_figures, "epoch_band", lambda *_, **__: None)
    monkeypatch.setattr(CellScores, "directions", ("audio-visual",))
    bands = ablation_page._bands(Ablation((), (cell,), {}, (0,)), {"a": CellScores(cell, {0: None})})
    assert bands == ({("Scope", "precision@K, audio-visual"): {"cca": band}} if drawn else {})


def test_at_most_eight_cells_have_lines():
    cells = tuple(Cell(f"{n}", resolve({"method": "cca", "data": "x"}), {}) for n in range(10))
    runs = {
        cell.name: CellScores(cell, {0: SimpleNamespace(by_epoch=lambda key: {})} if cell.name != "1" else {})
        for cell in cells
    }
    alone = ablation_page._selected(Ablation((), cells, {}, (0,)), runs)
    assert alone == {f"{n}": (n, False) for n in range(8) if n != 1}
    pairs = {f"{n}": f"{9 - n}" for n in range(10)}
    assert len(ablation_page._selected(Ablation((), cells, pairs, (0,)), runs)) == 9
