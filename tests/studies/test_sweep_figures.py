from dataclasses import replace

import numpy as np
import pytest

from aadml.configuration.config import resolve
from aadml.studies.grid import Cell
from aadml.studies.job import Job, work_off
from aadml.studies.results import CellScores, read_run
from aadml.studies.sweep_figures import (
    Band,
    _sd,
    bands_over,
    difference_curve,
    epoch_band,
    map_band,
    scope_band,
    spread_curve,
    spread_dots,
)
from tests.drawn_figures import contents


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


LINES = """\
height 3.18
x 'k' at 1 2 5 ['1', '2', '5']
y 'MAP'
legend none, a, b
caps 4
text 0.01 0.02 8 #22303c 'one seed'
box 0 0.2586 1 0.2828 #5f3dc41a 0 z 1
bars (0.976,0.1586)(0.976,0.4414) (1.976,0.3586)(1.976,0.6414) (4.976,0.6586)(4.976,0.9414) #0b7285 1.7 z 2
bars (1.024,0.1)(1.024,0.1) (2.024,0.0586)(2.024,0.3414) (5.024,0.0172)(5.024,0.5828) #e8590c 1.7 z 2
line (0,0.4)(1,0.4) #5f3dc4 1.2 [4.8, 3.0] None 6 z 2
line (0.976,0.3)(1.976,0.5)(4.976,0.8) #0b7285 1.7 - o 4 z 2.1
line (1.024,0.1)(2.024,0.2)(5.024,0.3) #e8590c 1.7 - o 4 z 2.1
"""


def test_lines_with_error_bars_are_shifted_around_their_positions_and_levels_are_drawn_across():
    y = {"a": [[0.2, 0.4, 0.7], [0.4, 0.6, 0.9]], "b": [[0.1, 0.1, 0.1], [0.1, 0.3, 0.5]]}
    bands = {name: Band([1.0, 2.0, 5.0], np.array(values), i) for i, (name, values) in enumerate(y.items())}
    level = {"none": Band([0], np.array([[0.3], [0.5]]), 10)}
    assert contents(spread_curve, bands, level, x="k", y="MAP", note="one seed") == LINES


def test_a_single_position_is_not_shifted_and_one_seed_has_no_spread():
    bands = {name: Band([3.0], np.array([[0.5]])) for name in "ab"}
    assert contents(spread_curve, bands, {}, x="x", y="y").count("\nbars (3,0.5)(3,0.5) ") == 2


@pytest.mark.parametrize(("count", "ticks"), [(12, range(12)), (16, range(0, 16, 2)), (24, range(0, 24, 3))])
def test_about_eight_positions_of_many_are_written(count, ticks):
    shown = contents(spread_curve, {"a": Band(list(range(count)), np.zeros((1, count)))}, {}, x="k", y="y")
    assert f"\nx 'k' at {' '.join(map(str, ticks))} [" in shown


DIFFERENCES = """\
height 3.18
x 'k' at 1 2 ['1', '2']
y 'gain'
legend a, b
caps 4
bars (0.994,0.09)(0.994,0.11) (1.994,0.18)(1.994,0.22) #0b7285 1.7 z 2
bars (1.006,0.2)(1.006,0.4) #e8590c 1.7 z 2
line (0,0)(1,0) #22303c 1 - None 6 z 2
line (0.994,0.1)(1.994,0.2) #0b7285 1.7 - o 4 z 2.1
line (1.006,0.3) #e8590c 1.7 - o 4 z 2.1
"""


def test_differences_are_sorted_by_position_around_zero():
    points = {"a": [(2.0, 0.2, 0.02), (1.0, 0.1, 0.01)], "b": [(1.0, 0.3, 0.1)]}
    assert contents(difference_curve, points, x="k", y="gain") == DIFFERENCES


OVER_EPOCHS = """\
height 2.98
x 'epoch' 0 5
y 'MAP' 0 1
legend a, b
caps
area (1,0.1586,0.4414)(2,0.3172,0.8828) #0b72851f 0 z 1
area (1,0.1,0.1)(2,0.1,0.1) #e8590c1f 0 z 1
line (1,0.3)(2,0.6) #0b7285 1.5 - None 6 z 2
line (1,0.1)(2,0.1) #e8590c 1.5 [6.0, 3.75] None 6 z 2
"""


def test_a_line_over_epochs_is_the_mean_amid_its_deviation():
    bands = {"a": Band([1, 2], np.array([[0.2, 0.4], [0.4, 0.8]]), 0), "b": Band([1, 2], np.full((1, 2), 0.1), 9, True)}
    assert contents(bands_over, bands, x="epoch", y="MAP", span=(0.0, 5.0)) == OVER_EPOCHS
    assert contents(bands_over, bands, x="epoch", y="MAP").splitlines()[1:3] == ["x 'epoch'", "y 'MAP'"]


def test_a_point_with_one_finished_seed_has_no_deviation(recwarn):
    values = np.array([[0.2, 0.4, 0.1], [0.4, np.nan, 0.1]])
    assert _sd(values).tolist() == [pytest.approx(0.02**0.5), 0.0, 0.0]
    assert _sd(values[:1]).tolist() == [0.0, 0.0, 0.0]
    assert not recwarn


ROWS = """\
height 2.08
x 'MAP'
y '' 2.6 -0.6 at 0 1 2 ['two', 'a name that is wrapped\\nafter 26 letters', 'none']
legend one seed, chance 0.100, mean ± sd over seeds
caps 4
dots o (0.2,0)(0.4,0) 14 #e8590c #e8590c 0 z 3
bars (0.1586,0)(0.4414,0) #0b7285 1.4 z 2
dots o (0.3,1) 14 #e8590c #e8590c 0 z 3
bars (0.3,1)(0.3,1) #0b7285 1.4 z 2
line (0.3,0) #0b7285 1.4 - o 5 z 2.1
line (0.3,1) #0b7285 1.4 - o 5 z 2.1
line (0.1,0)(0.1,1) #22303c 1 [4.0, 2.5] None 6 z 2
"""


def test_a_row_of_seeds_has_its_dots_its_mean_and_its_deviation():
    long = "a name that is wrapped after 26 letters"
    values = {"two": np.array([0.2, 0.4]), long: np.array([0.3]), "none": np.array([])}
    assert contents(spread_dots, values, x="MAP", marks={"chance": 0.1}) == ROWS
