import multiprocessing
import os
import signal
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
import torch
from click.testing import CliRunner

from aadml.cli import cli
from aadml.configuration.config import resolve
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.worker_pool import Finished, Lost, Reported
from aadml.runs.loading import read_config
from aadml.runs.train import train_into
from aadml.studies import sweep as sweeps
from aadml.studies.ablation_grid import jobs_of
from aadml.studies.grid import Overrides, cells_of, parse_axis, points
from aadml.studies.job import FAILURE, Job
from aadml.studies.sweep import sweep

KEPT = ("model.safetensors", "config.yaml")


def jobs(base, folder, text="proxy.k=1,2", seeds=(0, 1)):
    return jobs_of(cells_of(points(resolve(base), [parse_axis(text)], Overrides())), seeds, folder)


def content(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for name in KEPT for p in folder.glob(f"runs/*/{name}")}


@pytest.mark.parametrize(
    ("device", "workers", "count"), [("cpu", None, 3), ("cuda", None, 1), ("cpu", 2, 2), ("cuda", 9, 4), ("cpu", 0, 0)]
)
def test_a_card_has_one_worker_and_a_processor_one_for_each_core(base, tmp_path, monkeypatch, device, workers, count):
    monkeypatch.setattr(sweeps, "chosen_device", lambda *_: torch.device(device))
    monkeypatch.setattr(sweeps, "processors", lambda: 3)
    assert sweeps.worker_count(workers, jobs(base, tmp_path)) == count


def test_every_run_gets_a_folder_and_a_second_sweep_keeps_them(base, tmp_path):
    todo = jobs(base, tmp_path)
    assert [outcome.reason for outcome in sweep(todo, workers=0)] == [""] * 4
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == [
        f"proxy.k--{k}_seed{seed}" for k in (1, 2) for seed in (0, 1)
    ]
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("runs/*/*")}
    again = sweep(todo, workers=0)
    assert all(outcome.was_finished for outcome in again)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.glob("runs/*/*")} == before


def test_runs_in_folders_that_the_second_edition_named_are_kept(base, tmp_path):
    (job,) = jobs(base, tmp_path, "proxy.k=1", seeds=(0,))
    sweep([job], workers=0)
    job.folder.rename(tmp_path / "runs" / "proxy.k=1_seed=0")
    (again,) = sweep(jobs(base, tmp_path, "proxy.k=1", seeds=(0,)), workers=0)
    assert again.was_finished
    assert again.job.folder.name == "proxy.k=1_seed=0"


@pytest.mark.slow
def test_an_interrupted_sweep_goes_on_and_ends_in_the_same_bytes(base, tmp_path):
    sweep(jobs(base, tmp_path / "whole"), workers=0)
    epochs = []

    def interrupt(job, done, total):
        epochs.append(done)
        if len(epochs) == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep(jobs(base, tmp_path / "stopped"), workers=0, on_epoch=interrupt)
    assert len(list((tmp_path / "stopped").glob("runs/*/evaluation.json"))) == 1
    outcomes = sweep(jobs(base, tmp_path / "stopped"), workers=0)
    assert [outcome.was_finished for outcome in outcomes] == [True, False, False, False]
    assert content(tmp_path / "stopped") == content(tmp_path / "whole")


def test_a_run_that_fails_does_not_stop_the_rest_and_is_tried_again(base, features, tmp_path):
    values = {"method": "cca", "data": str(features)}
    outcomes = sweep(jobs(values, tmp_path, "method.dimension=2,500,3", seeds=(0,)), workers=0)
    assert [bool(outcome.reason) for outcome in outcomes] == [False, True, False]
    failed = outcomes[1]
    assert "500" in failed.reason
    assert (failed.job.folder / FAILURE).read_text().startswith(failed.reason)
    again = sweep([outcome.job for outcome in outcomes], workers=0)
    assert [outcome.was_finished for outcome in again] == [True, False, True]


def test_outcomes_are_reported_as_they_come_and_returned_in_the_order_of_the_jobs(base, tmp_path, monkeypatch):
    def work(job, report):
        report((1, 3))
        return {"a": "no disk", "c": "not possible: too wide"}.get(job.folder.name, "")

    monkeypatch.setattr(sweeps, "work_off", work)
    monkeypatch.setattr(sweeps, "is_done", lambda job: job.folder.name == "b")
    tasks, outcomes, epochs = [Job(tmp_path / name, resolve(base)) for name in "abcd"], [], []
    found = sweep(tasks, workers=0, on_outcome=outcomes.append, on_epoch=lambda *given: epochs.append(given))
    assert [(outcome.job, outcome.reason, outcome.was_finished, outcome.failed) for outcome in found] == [
        (tasks[0], "no disk", False, True), (tasks[1], "", True, False),
        (tasks[2], "not possible: too wide", False, False), (tasks[3], "", False, False),
    ]  # fmt: skip
    assert outcomes == [found[n] for n in (1, 0, 2, 3)]
    assert epochs == [(tasks[n], 1, 3) for n in (0, 2, 3)]


def test_a_worker_that_dies_is_a_sentence_about_its_end(monkeypatch):
    pools = []

    def pool(work, workers, conditions):
        pools.append((workers, conditions.one_thread))
        events = [Finished("a", 1), Lost("b", "SIGKILL", late=False), Lost("c", "exit status 3", late=False)]
        return nullcontext(SimpleNamespace(work_off=lambda tasks: [*events, Reported("d", "half")]))

    monkeypatch.setattr(sweeps, "WorkerPool", pool)
    reports = []
    found = list(sweeps.in_processes(None, "abcd", 2, lambda *given: reports.append(given)))
    assert found == [
        ("a", 1), ("b", "the process ended with SIGKILL (out of memory?)"),
        ("c", "the process ended with exit status 3"),
    ]  # fmt: skip
    assert reports == [("d", "half")]
    assert list(sweeps.in_processes(None, "abcd", 1)) == found
    assert pools == [(2, True), (1, False)]


def test_a_run_that_an_earlier_version_began_with_relative_paths_is_continued(features, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    absolute = resolve({"method": "random", "data": str(features)})
    train_into(absolute.on(features.name), tmp_path / "run")
    assert read_config(tmp_path / "run").data == features.name
    (outcome,) = sweep([Job(tmp_path / "run", absolute)], workers=0)
    assert outcome.was_finished
    assert train_into(absolute, tmp_path / "run").folder == tmp_path / "run"


def test_a_folder_of_another_config_is_refused(base, tmp_path):
    sweep(jobs(base, tmp_path, "proxy.k=1", seeds=(0,)), workers=0)
    with pytest.raises(InputError, match="validation"):
        sweep(jobs(base | {"validation": 0.3}, tmp_path, "proxy.k=1", seeds=(0,)), workers=0)


@pytest.mark.slow
def test_processes_give_the_same_bytes_and_one_that_dies_costs_one_run(base, tmp_path):
    sweep(jobs(base, tmp_path / "whole"), workers=0)
    killed = []

    def kill_once(job, done, total):
        if not killed:
            killed.append(multiprocessing.active_children()[0].pid)
            os.kill(killed[0], signal.SIGKILL)

    outcomes = sweep(jobs(base, tmp_path / "crew"), workers=2, on_epoch=kill_once)
    reasons = [outcome.reason for outcome in outcomes if outcome.reason]
    assert len(reasons) <= 1
    assert all("SIGKILL" in reason for reason in reasons)
    assert not [outcome.reason for outcome in sweep(jobs(base, tmp_path / "crew"), workers=2) if outcome.reason]
    assert content(tmp_path / "crew") == content(tmp_path / "whole")


@pytest.mark.parametrize(
    "words", [["compare", "--methods", "cca"], ["ablate", "--over", "proxy.k=1..2"], ["reproduce", "paper"]],
    ids=lambda words: words[0],
)  # fmt: skip
def test_a_sweep_on_data_that_are_not_there_leaves_no_folder(tmp_path, words):
    data = ["--ave" if words[0] == "reproduce" else "--data", str(tmp_path / "none.h5")]
    done = CliRunner().invoke(cli, [*words, *data, "-o", str(tmp_path / "new" / "out")])
    assert isinstance(done.exception, InputError)
    assert "none.h5 does not exist" in str(done.exception)
    assert list(tmp_path.iterdir()) == []
