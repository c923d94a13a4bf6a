from dataclasses import replace

import numpy as np
import pytest

from aadml.configuration.config import resolve
from aadml.studies.grid import Cell
from aadml.studies.job import Job, work_off
from aadml.studies.results import CellScores, read_run
from aadml.studies.sweep_figures import epoch_band, map_band, scope_band


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
