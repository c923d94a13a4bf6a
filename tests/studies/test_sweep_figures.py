from dataclasses import replace

import numpy as np
import pytest

from aadml.configuration.config import resolve
from aadml.studies.grid import Cell
from aadml.studies.job import Job, work_off
from aadml.studies.results import CellScores, read_run
from aadml.studies.sweep_figures import Band, epoch_band, map_band, scope_band, spread_curve


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
