"""Figures of the AADML paper: their numbers, and what is drawn."""

import pytest

from aadml.papers.rows import LEAKS, SELECTION
from aadml.reports.published import PAPER
from aadml.reports.tables import markdown
from aadml.retrieval.significance import Spread
from aadml.runs.test_curve import PREFIX
from tests.drawn_figures import contents
from tests.papers.planted_scores import group, row, scores

pytest.importorskip("matplotlib")
figures = pytest.importorskip("aadml.papers.figures")


def test_figure_5_has_six_curves_of_each_split_and_their_numbers_are_those_of_the_logs(monkeypatch):
    losses = [name for anchored in PAPER.best_k for name in (anchored, anchored.removeprefix("aa-"))]
    assert len(losses) == 6
    rows = [row("losses", name) for name in (*losses, "no curve")]
    keys = ("train loss", "train map_mean", "valid loss", "valid map_mean", f"{PREFIX}loss", f"{PREFIX}map_mean")
    log = [{"epoch": epoch, **{key: epoch + n / 10 for n, key in enumerate(keys)}} for epoch in (1, 2)]
    monkeypatch.setattr(figures, "drawn", contents)
    drawings, table = figures.epoch_figures(group([(of, scores(of, [0.4, 0.6], log)) for of in rows]))
    titles = [(split, title) for split in ("train", "valid", "test") for title in ("loss", "MAP")]
    assert list(table.rows) == [
        (loss, split, title, epoch, Spread(pytest.approx(epoch + n / 10), pytest.approx(0), 2))
        for loss in losses
        for n, (split, title) in enumerate(titles)
        for epoch in (1, 2)
    ]
    assert list(drawings) == [
        "train loss",
        "test loss, not used for any choice",
        "train MAP",
        "test MAP, not used for any choice",
        "valid MAP, which selects the epoch",
    ]
    for title, drawing in drawings.items():
        y = title.partition(",")[0]
        assert drawing.splitlines()[1:4] == ["x 'epoch'", f"y {y!r}", f"legend {', '.join(losses)}"]
        solid = [line.split()[4] for line in drawing.splitlines() if line.startswith("line ")]
        assert solid == ["-", "[6.0,"] * 3  # losses without proxies are dashed
        colors = [line.split()[2] for line in drawing.splitlines() if line.startswith("line ")]
        assert colors == [color for color in figures.COLORS[:3] for _ in range(2)]


def test_without_logs_there_are_no_curves():
    one = row("losses", next(iter(PAPER.best_k)))
    assert figures.epoch_figures(group([(one, scores(one, [0.4]))]))[1].rows == ()
    assert figures.epoch_figures(group([(one, scores(one, [0.4]))]))[0] == {}


LEAK_DOTS = """\
height 2.4
x 'MAP on AVE, mean of both directions' 0 1
y '' 2.6 -0.6 at 0 1 2 ['video-adviser-lite', 'clip', 'aadml']
legend legacy:test-selection, legacy:drop-last, published (protocol unstated), chance 0.100, inductive (ours)
caps 4
bars (0.4586,0)(0.7414,0) #22303c 1.4 z 4
dots v (0.65,1) 16 #0b7285 #0b7285 0 z 2
dots X (0.2,1) 16 #846358 #846358 0 z 2
bars (0.3,1)(0.3,1) #22303c 1.4 z 4
dots | (0.145,1) 34 #22303c #22303c 1.6 z 3
dots v (0.9,2) 16 #0b7285 #0b7285 0 z 2
bars (0.4,2)(0.4,2) #22303c 1.4 z 4
dots | (0.887,2) 34 #22303c #22303c 1.6 z 3
dots |  34 #22303c #22303c 1.6 z 1
line (0.6,0)(0.6,0) #868e96 0.8 - None 6 z 1
line (0.6,0) #22303c 1.4 - o 5 z 4.1
line (0.2,1)(0.65,1) #868e96 0.8 - None 6 z 1
line (0.3,1) #22303c 1.4 - o 5 z 4.1
line (0.4,2)(0.9,2) #868e96 0.8 - None 6 z 1
line (0.4,2) #22303c 1.4 - o 5 z 4.1
line (0.1,0)(0.1,1) #22303c 1 [4.0, 2.5] None 6 z 2
"""


def test_a_line_joins_the_inductive_map_of_a_row_with_its_leaks():
    maps = {"video-adviser-lite": [0.5, 0.7], "cca": [], "clip": [0.3], "aadml": [0.4, 0.4]}
    rows = [row("methods", name) for name in maps]
    leaks = {SELECTION: Spread(0.65, 0.0, 1), LEAKS[-1]: Spread(0.2, 0.0, 1)}
    found = group(
        [(of, scores(of, maps[of.item])) for of in rows],
        leaks={"clip": leaks, "aadml": {SELECTION: Spread(0.9, 0.0, 1)}},
    )
    assert contents(figures.leak_dots, rows, found) == LEAK_DOTS


SCOPE = """\
height 2.98
x 'scope K' 0 1000
y 'precision-scope@K' 0 1
legend msnsca, aadml
caps
area (10,0.8,0.8)(1000,0.5,0.5) #e8590c1f 0 z 1
area (10,0.7,0.7)(500,0.6,0.6) #0b72851f 0 z 1
line (10,0.8)(1000,0.5) #e8590c 1.5 - None 6 z 2
line (10,0.7)(500,0.6) #0b7285 1.5 - None 6 z 2
"""


def test_figure_3_draws_some_methods_up_to_k_of_1000_and_its_table_has_all(monkeypatch):
    monkeypatch.setattr(figures, "drawn", contents)
    curves = {"dcca": {10: 0.9, 2000: 0.3}, "msnsca": {10: 0.8, 1000: 0.5}, "kcca": {}, "aadml": {10: 0.7, 500: 0.6}}
    rows = [row("methods", name) for name in curves]
    scored = [(of, scores(of, [0.5] * bool(curves[of.item]), scope=curves[of.item])) for of in rows]
    panels, table = figures.scope_figure(group(scored))
    assert panels == dict.fromkeys(("audio-visual", "visual-audio"), SCOPE)
    assert [line for line in markdown(table).splitlines() if "visual-audio" not in line] == [
        "Precision of the K nearest results. about", "", "| method | direction | K | precision |",
        "| --- | --- | ---: | ---: |", "| dcca | audio-visual | 10 | 0.900 |", "| msnsca | audio-visual | 10 | 0.800 |",
        "| msnsca | audio-visual | 1000 | 0.500 |", "| aadml | audio-visual | 10 | 0.700 |",
        "| aadml | audio-visual | 500 | 0.600 |",
    ]  # fmt: skip
    assert len(table.rows) == 10
    assert figures.scope_figure(group(scored[:1]))[0] == {}


NEIGHBORS = """\
height 3.18
x 'k neighbors' at 1 2 ['1', '2']
y 'MAP, mean of both directions'
legend {names}
caps 4
bars (0.994,0.3)(0.994,0.3) (1.994,0.4)(1.994,0.4) #0b7285 1.7 z 2
bars (1.006,0.5)(1.006,0.5) (2.006,0.6)(2.006,0.6) {color} 1.7 z 2
line (0.994,0.3)(1.994,0.4) #0b7285 1.7 - o 4 z 2.1
line (1.006,0.5)(2.006,0.6) {color} 1.7 - o 4 z 2.1
"""


def test_figure_4_has_a_panel_for_the_losses_and_one_for_the_readings(monkeypatch):
    monkeypatch.setattr(figures, "drawn", contents)
    maps = {"aa-triplet": [0.3, 0.4], "aa-hard-triplet": [0.5, 0.6], "paper-r1": [0.5, 0.6], "paper-r2": []}
    rows = {(name, k): row("losses", name, f"{name} {k}") for name in maps for k in (1, 2)}
    cells = {name: {k: rows[name, k].cell for k in (1, 2)} for name in maps}
    scored = [(of, scores(of, maps[name][k - 1 : k])) for (name, k), of in rows.items()]
    panels, table = figures.neighbor_figure(group(scored, neighbors=cells))
    assert list(panels.values()) == [
        NEIGHBORS.format(names=names, color=color)
        for names, color in (("aa-triplet, aa-hard-triplet", figures.COLORS[1]), ("R6, R1", figures.COLORS[2]))
    ]
    assert markdown(table).splitlines()[:5] == [
        "MAP over the number of neighbors. about", "", "| loss | k | MAP audio-visual | MAP visual-audio | MAP mean |",
        "| --- | ---: | ---: | ---: | ---: |", "| aa-triplet | 1 | 0.300 | 0.300 | 0.300 |",
    ]  # fmt: skip
    assert table.rows[-1] == ("paper-r2", 2, None, None, None)
