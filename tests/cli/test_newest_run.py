"""A folder of runs is replaced by its newest finished run."""

import os

import pytest

import aadml as library


@pytest.fixture
def runs(tmp_path, features):
    for seed in (0, 1):
        folder = library.fit(features, method="random", seed=seed, runs=tmp_path / "runs").folder
        os.utime(folder / "evaluation.json", (seed, seed))
    (tmp_path / "runs" / "unfinished").mkdir()
    return tmp_path / "runs"


def test_the_newest_finished_run_of_a_folder_is_used(runs, aadml, caplog):
    newest = max(runs.glob("*/evaluation.json"), key=lambda file: file.stat().st_mtime).parent
    code, out, _ = aadml("evaluate", runs)
    assert (code, out) == aadml("evaluate", newest)[:2]
    assert code == 0
    assert f"{runs} contains 2 finished runs; the newest is used: {newest}" in caplog.text
    assert aadml("verify", runs)[1] == f"{newest}: every file matches its checksum\n"
    assert str(newest) in aadml("report", runs)[1]


def test_python_takes_the_newest_finished_run_too(runs, caplog):
    newest = max(runs.glob("*/evaluation.json"), key=lambda file: file.stat().st_mtime).parent
    assert library.load(runs).folder == newest
    assert f"{runs} contains 2 finished runs; the newest is used: {newest}" in caplog.text
    assert library.verify(runs) == []
    assert repr(library.evaluate(runs)) == repr(library.evaluate(newest))


def test_a_folder_without_runs_stays_an_error(tmp_path, aadml):
    code, _, err = aadml("evaluate", tmp_path)
    assert code == 2
    assert str(tmp_path) in err
