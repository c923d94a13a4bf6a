from dataclasses import replace

import numpy as np
import pytest

from aadml.configuration.config import resolve
from aadml.studies.grid import Cell
from aadml.studies.job import Job, work_off
from aadml.studies.results import CellScores, read_run
from aadml.studies.sweep_figures import (
    Band,
    bands_over,
    difference_curve,
    epoch_band,
    map_band,
    scope_band,
    spread_curve,
    spread_dots,
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    values = {"data": "synthetic:ave", "network": {"hidden": [4]}, "training": {"epochs": 2, "batch": 200}}
    job = Job(tmp_path_factory.mktemp("run") / "run", resolve({"method": "aadml", "loss": "triplet", **values}))
    assert work_off(job) == ""
    return read_run(job)


def cell(*runs):
    return CellScores(Cell("a", resolve({"method": "cca", "data": "x"})), dict(enumerate(runs)))


def test_a_band_of_map_has_no_number_where_a_seed_failed(run):
    band = map_band([1, 2], [cell(run, run), cell(run)])
    assert np.isnan(band.y).tolist() == [[False, False], [False, True]]
    assert band.y[0, 0] == run.map_mean


def test_a_band_over_epochs_has_the_epochs_that_all_logs_have(run):
    shorter = replace(run, epochs=run.epochs[:1])
    assert epoch_band([run, run], "loss").x == [1, 2]
    assert epoch_band([run, shorter], "loss").x == [1]
    assert epoch_band([run], "no such key") is None


def test_a_band_over_k_ends_at_the_widest_and_needs_equal_k(run):
    assert max(scope_band(cell(run), "audio-visual", widest=30).x) == 30
    direction = run.record.directions["audio-visual"]
    other = replace(direction, scope=replace(direction.scope, k=direction.scope.k[:-1]))
    changed = replace(run, record=replace(run.record, directions={**run.record.directions, "audio-visual": other}))
    assert scope_band(cell(run, changed), "audio-visual") is None
    assert scope_band(cell(), "audio-visual") is None


@pytest.fixture
def figures(monkeypatch):
    """The figures that are drawn, instead of their SVG."""
    drawn = []
    monkeypatch.setattr("aadml.feature_extraction.ground.figures.svg", lambda figure: drawn.append(figure) or "")
    return drawn


def test_lines_with_error_bars_are_shifted_around_their_positions(figures):
    y = {"a": [[0.2, 0.4, 0.7], [0.4, 0.6, 0.9]], "b": [[0.1, 0.1, 0.1], [0.1, 0.3, 0.5]]}
    x = [1.0, 2.0, 5.0]
    spread_curve({name: Band(x, np.array(values), i) for i, (name, values) in enumerate(y.items())}, {}, x="x", y="y")
    (axes,) = figures[0].axes
    assert axes.get_xticks().tolist() == x
    for bar, shift, values in zip(axes.containers, (-0.5, 0.5), y.values(), strict=True):
        line, _, (error,) = bar.lines
        np.testing.assert_allclose(line.get_xdata(), np.array(x) + shift * 0.012 * 4)
        np.testing.assert_allclose(line.get_ydata(), np.mean(values, axis=0))
        heights = [segment[1, 1] - segment[0, 1] for segment in error.get_segments()]
        np.testing.assert_allclose(heights, 2 * np.std(values, axis=0, ddof=1))


def test_a_single_position_is_not_shifted_and_one_seed_has_no_spread(figures):
    spread_curve({name: Band([3.0], np.array([[0.5]])) for name in "ab"}, {}, x="x", y="y")
    (axes,) = figures[0].axes
    assert [bar.lines[0].get_xdata().tolist() for bar in axes.containers] == [[3.0], [3.0]]


@pytest.mark.parametrize(("count", "shown"), [(12, 12), (16, 8), (24, 8), (50, 9)])
def test_about_eight_positions_of_many_are_written(figures, count, shown):
    spread_curve({"a": Band(list(range(count)), np.zeros((1, count)))}, {}, x="x", y="y")
    ticks = figures[0].axes[0].get_xticks()
    assert len(ticks) == shown
    assert len(set(np.diff(ticks))) == 1


def lines_of(axes):
    """Label -> (x, y, style) of the lines of axes."""
    return {line.get_label(): (*np.transpose(line.get_xydata()).tolist(), line.get_linestyle()) for line in axes.lines}


@pytest.mark.parametrize("span", [(0.0, 5.0), None])
def test_a_line_over_epochs_is_the_mean_amid_its_deviation(figures, span):
    bands = {"a": Band([1, 2], np.array([[0.2, 0.4], [0.4, 0.8]]), 0), "b": Band([1, 2], np.full((1, 2), 0.1), 1, True)}
    bands_over(bands, x="epoch", y="MAP", span=span)
    (axes,) = figures[0].axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("epoch", "MAP")
    assert ((axes.get_xlim(), axes.get_ylim()) == (span, (0, 1))) is (span is not None)
    drawn = lines_of(axes)
    assert drawn["a"][:2] == ([1, 2], pytest.approx([0.3, 0.6]))
    assert drawn["b"][:2] == ([1, 2], [0.1, 0.1])
    assert (drawn["a"][2] == "-") is not (drawn["b"][2] == "-")
    for area, (mean, sd) in zip(axes.collections, [([0.3, 0.6], np.array([0.2, 0.4]) / 2**0.5), (0.1, 0)], strict=True):
        low, high = area.get_paths()[0].vertices[:, 1].min(), area.get_paths()[0].vertices[:, 1].max()
        assert (low, high) == pytest.approx((np.min(mean - sd), np.max(mean + sd)))
    assert [text.get_text() for text in figures[0].legends[0].get_texts()] == ["a", "b"]


def test_a_level_is_drawn_across_and_its_deviation_around_it(figures):
    level = Band([0], np.array([[0.3], [0.5]]), 2)
    spread_curve({"a": Band([1.0, 2.0], np.zeros((1, 2)))}, {"chance": level}, x="k", y="MAP", note="one seed")
    (axes,) = figures[0].axes
    x, y, style = lines_of(axes)["chance"]
    assert (x, y, style == "-") == ([0, 1], pytest.approx([0.4, 0.4]), False)
    (span,) = axes.patches
    assert [span.get_y(), span.get_height()] == pytest.approx([0.4 - 0.02**0.5, 2 * 0.02**0.5])
    assert [text.get_text() for text in axes.texts] == ["one seed"]


def test_differences_are_sorted_by_position_around_zero(figures):
    difference_curve({"a": [(2.0, 0.2, 0.02), (1.0, 0.1, 0.01)]}, x="k", y="gain")
    (axes,) = figures[0].axes
    (bar,) = axes.containers
    assert bar.lines[0].get_xydata().tolist() == [[1.0, 0.1], [2.0, 0.2]]
    heights = [segment[1, 1] - segment[0, 1] for segment in bar.lines[2][0].get_segments()]
    assert heights == pytest.approx([0.02, 0.04])
    assert [0.0, 0.0] in [list(line.get_ydata()) for line in axes.lines]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("k", "gain")


def test_a_row_of_seeds_has_its_dots_its_mean_and_its_deviation(figures):
    values = {"none": np.array([]), "one": np.array([0.3]), "two": np.array([0.2, 0.4])}
    spread_dots(values, x="MAP", marks={"chance": 0.1})
    (axes,) = figures[0].axes
    assert [tick.get_text() for tick in axes.get_yticklabels()] == list(values)
    assert axes.get_ylim() == (pytest.approx(2.6), -0.6)  # the first row is above
    dots = [area.get_offsets().tolist() for area in axes.collections if type(area).__name__ == "PathCollection"]
    assert dots == [[[0.3, 1]], [[0.2, 2], [0.4, 2]]]
    means = [bar.lines[0].get_xydata().tolist() for bar in axes.containers]
    assert means == [[[pytest.approx(0.3), 1.0]], [[pytest.approx(0.3), 2.0]]]
    widths = [bar.lines[2][0].get_segments()[0] for bar in axes.containers]
    assert [segment[1, 0] - segment[0, 0] for segment in widths] == pytest.approx([0.0, 2 * 0.02**0.5])
    assert lines_of(axes)["chance 0.100"][0] == [0.1, 0.1]
