"""Figures of the AADML paper: their numbers, and what is drawn."""

import pytest

from aadml.papers.rows import LEAKS, SELECTION
from aadml.reports.published import PAPER
from aadml.retrieval.significance import Spread
from aadml.runs.test_curve import PREFIX
from tests.papers.planted_scores import group, row, scores

pytest.importorskip("matplotlib")
figures = pytest.importorskip("aadml.papers.figures")


def test_figure_5_has_six_curves_of_each_split_and_their_numbers_are_those_of_the_logs():
    losses = [name for anchored in PAPER.best_k for name in (anchored, anchored.removeprefix("aa-"))]
    assert len(losses) == 6
    rows = [row("losses", name) for name in (*losses, "no curve")]
    keys = ("train loss", "train map_mean", "valid loss", "valid map_mean", f"{PREFIX}loss", f"{PREFIX}map_mean")
    log = [{"epoch": epoch, **{key: epoch + n / 10 for n, key in enumerate(keys)}} for epoch in (1, 2)]
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
    for drawing in drawings.values():
        assert [drawing.count(f">{loss}<") for loss in losses] == [1] * 6
        assert "no curve" not in drawing


def test_without_logs_there_are_no_curves():
    one = row("losses", next(iter(PAPER.best_k)))
    assert figures.epoch_figures(group([(one, scores(one, [0.4]))]))[1].rows == ()
    assert figures.epoch_figures(group([(one, scores(one, [0.4]))]))[0] == {}


def test_a_line_joins_the_inductive_map_of_a_row_with_its_leaks(monkeypatch):
    drawn = []
    monkeypatch.setattr("aadml.feature_extraction.ground.figures.svg", lambda figure: drawn.append(figure) or "")
    rows = [row("methods", name) for name in ("aadml", "cca", "clip")]
    scored = [(of, scores(of, maps)) for of, maps in zip(rows, [[0.5, 0.7], [], [0.3]], strict=True)]
    leaks = {"aadml": {SELECTION: Spread(0.65, 0.0, 1), LEAKS[0]: Spread(0.9, 0.0, 1)}}
    figures.leak_dots(rows, group(scored, leaks=leaks))
    (axes,) = drawn[0].axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["aadml", "clip"]
    assert (axes.get_xlim(), axes.get_ylim()) == ((0, 1), (1.6, -0.6))
    joined = [line for line in axes.lines if line.get_color() == figures.COLORS[7] and len(line.get_xdata()) == 2]
    ends = [(list(line.get_xdata()), list(line.get_ydata())) for line in joined]
    assert ends == [([pytest.approx(0.6), 0.9], [0, 0]), ([pytest.approx(0.3)] * 2, [1, 1])]
    places = [tuple(map(float, dots.get_offsets()[0])) for dots in axes.collections if len(dots.get_offsets()) == 1]
    known = PAPER.published["methods"]["aadml"]["AVE"].mean
    assert {(0.65, 0.0), (0.9, 0.0), (known, 0.0)} <= {(round(x, 6), y) for x, y in places}
    words = [text.get_text() for text in drawn[0].legends[0].get_texts()]
    assert "inductive (ours)" in words
    assert "chance 0.100" in words


def test_figure_4_has_a_panel_for_the_losses_and_one_for_the_readings():
    rows = {name: row("losses", name) for name in ("aa-triplet", "aa-hard-triplet", "paper-r1")}
    cells = {name: dict.fromkeys((1, 2), of.cell) for name, of in rows.items()}
    scored = [(of, scores(of, [0.4])) for of in rows.values()]
    panels, table = figures.neighbor_figure(group(scored, neighbors=cells))
    assert [line[:2] for line in table.rows] == [(name, k) for name in rows for k in (1, 2)]
    losses, readings = panels.values()
    assert [f">{name}<" in losses for name in rows] == [True, True, False]
    assert [f">{name}<" in readings for name in ("R6", "R1", "aa-hard-triplet")] == [True, True, False]
