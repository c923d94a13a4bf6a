import json
from dataclasses import replace

import pytest

from aadml.configuration.config import resolve
from aadml.configuration.files import open_config
from aadml.feature_extraction.ground.errors import InputError
from aadml.papers import reproduction_plan
from aadml.papers.reproduction_plan import FULL_SIZE, MEASURED, NOTE, STEPS, ReproductionPlan, shortened
from aadml.reports.tables import Table
from aadml.studies import execution
from aadml.studies.execution import SweepResult
from aadml.studies.forecast import Forecast
from aadml.studies.grid import Overrides
from aadml.studies.job import Job
from aadml.studies.sweep import SweepOutcome
from tests.reports.parsed_html import words


def test_a_shortened_schedule_has_so_many_steps_and_logs_every_epoch():
    config = resolve(open_config("aadml_ave").values)
    short = shortened(config, FULL_SIZE)
    assert short.training.epochs * FULL_SIZE / 200 == pytest.approx(STEPS, rel=0.15)
    assert short.training.train_map == 1
    assert shortened(config, 100_000).training.epochs == 1
    brief = Overrides({"training.epochs": 1}).applied(config)
    assert shortened(brief, 100) is brief


@pytest.mark.parametrize(
    ("preset", "batch", "clips", "epochs"),
    [("aadml_ave", 736, 1577, 8), ("aadml_ave", 736, 1578, 7), ("aadml_ave", 1051, 100, 10),  # 15 steps of 1,577 clips
     ("3cmlf", 32, 100_000, 3), ("mei_clotho", 32, 100_000, 1)],
)  # fmt: skip
def test_a_shortened_schedule_is_of_whole_epochs_and_at_least_one_a_stage(preset, batch, clips, epochs):
    config = Overrides({"training.batch": batch}).applied(resolve(open_config(preset).values))
    assert shortened(config, clips).training.epochs == epochs


def test_runs_are_trained_after_an_estimate_the_longest_first_without_those_that_cannot_be(monkeypatch, tmp_path):
    config = resolve({"method": "cca", "data": "x.h5"})
    jobs = [Job(tmp_path / "runs" / name, config) for name in ("short", "impossible", "long")]
    expected = Forecast(
        {str(jobs[0].folder): 1.0, str(jobs[2].folder): 7200.0}, 0, 1, {str(jobs[1].folder): "too wide"}
    )
    monkeypatch.setattr(reproduction_plan, "forecast", lambda *given, **options: estimates.append(options) or expected)
    monkeypatch.setattr(execution, "is_done", lambda job: True)
    monkeypatch.setattr(execution, "check_same_study", lambda jobs: None)
    estimates, notes, asked, trained = [], [], [], []

    def work(jobs, workers):
        trained.extend(job.folder.name for job in jobs)
        return [SweepOutcome(job) for job in jobs]

    plan = ReproductionPlan(
        folder=tmp_path, workers=1, seeds=range(1), note=notes.append, confirm=asked.append, work=work,
    )  # fmt: skip
    outcomes = plan.reproduce(jobs)
    assert [(outcome.job, outcome.reason) for outcome in outcomes] == [
        (jobs[2], ""), (jobs[0], ""), (jobs[1], "not possible: too wide"),
    ]  # fmt: skip
    assert trained == ["long", "short"]
    assert asked == [expected]
    assert notes == ["forecast: 2 of 2 runs remain, about 2.0 h on 1 worker (from 4 steps of each kind of run)"]
    merged = replace(plan, merge=True, work=pytest.fail).reproduce(jobs)
    assert merged == [SweepOutcome(job, was_finished=True) for job in (jobs[0], jobs[2])] + outcomes[2:]
    assert (len(asked), len(notes)) == (1, 1)
    assert [options["kept"] for options in estimates] == [tmp_path / MEASURED]
    assert replace(plan, quick=True).marked(Table((), (), "about")).caption == f"{NOTE} about"
    assert plan.marked(Table((), (), "about")).caption == "about"
    assert plan.warning() == ""
    assert words(replace(plan, quick=True).warning()) == NOTE


def test_smaller_data_train_proportionally_fewer_steps():
    config = resolve(open_config("mei_audiocaps").values)
    assert shortened(config, 208).training.epochs == shortened(config, FULL_SIZE).training.epochs <= 2


def test_rows_that_are_not_possible_are_named_before_the_start_and_are_no_failures(features, tmp_path):
    values = {"method": {"name": "cca", "dimension": 2}, "data": str(features)}
    jobs = [
        Job(
            tmp_path / "runs" / f"{size}_seed{seed}",
            resolve(values | {"seed": seed, "method": {"name": "cca", "dimension": size}}),
        )
        for size in (2, 500)
        for seed in (0, 1)
    ]
    said = []
    plan = ReproductionPlan(
        folder=tmp_path, workers=0, note=said.append, seeds=range(2), confirm=lambda expected: said.append("start")
    )
    outcomes = plan.reproduce(jobs)
    assert said.index("start") > next(
        n for n, words in enumerate(said) if "2 of 4 runs cannot be trained (500)" in words
    )
    assert any("forecast: 2 of 2 runs remain" in words for words in said)
    reasons = {outcome.job.folder: outcome.reason for outcome in outcomes}
    assert [bool(reasons[job.folder]) for job in jobs] == [False, False, True, True]
    assert all(reasons[job.folder].startswith("not possible: method.dimension is 500") for job in jobs[2:])
    assert [[place.name for place in job.folder.iterdir()] for job in jobs[2:]] == [["failure.txt"]] * 2
    assert SweepResult(outcomes, tmp_path).failed == 0


def test_a_merge_reads_the_runs_of_all_shards_and_measures_none(features, tmp_path, monkeypatch):
    jobs = [
        Job(
            tmp_path / "runs" / f"{size}_seed0",
            resolve({"method": {"name": "cca", "dimension": size}, "data": str(features)}),
        )
        for size in (2, 500, 3)
    ]
    plan = ReproductionPlan(folder=tmp_path, workers=0, seeds=range(1), confirm=lambda expected: None)
    first, second = (replace(plan, shard=(number, 2)).reproduce(jobs) for number in (0, 1))
    assert {outcome.job.folder: outcome.reason for outcome in first} == {jobs[0].folder: "", jobs[2].folder: ""}
    assert [outcome.job for outcome in second] == [jobs[1]]
    assert second[0].reason.startswith("not possible: method.dimension is 500")
    monkeypatch.setattr(reproduction_plan, "forecast", pytest.fail)
    merge = replace(plan, merge=True, work=pytest.fail, confirm=pytest.fail)
    assert {o.job.folder: o.reason for o in merge.reproduce(jobs)} == {
        o.job.folder: o.reason for o in (*first, *second)
    }
    (jobs[1].folder / "failure.txt").write_text("no disk\n")
    with pytest.raises(InputError, match="1 of 3 runs are not finished"):
        merge.reproduce(jobs)


def test_a_run_that_has_become_possible_is_not_reported_as_impossible(features, tmp_path):
    def job(size):
        values = {"method": {"name": "cca", "dimension": size}, "data": str(features)}
        return Job(tmp_path / "runs" / "row_seed0", resolve(values))

    def stopped(jobs, workers):
        return [SweepOutcome(job, "the process ended with SIGKILL") for job in jobs]

    plan = ReproductionPlan(folder=tmp_path, workers=0, seeds=range(1), confirm=lambda expected: None, work=stopped)
    assert [outcome.reason[:13] for outcome in plan.reproduce([job(500)])] == ["not possible:"]
    assert [outcome.reason for outcome in plan.reproduce([job(2)])] == ["the process ended with SIGKILL"]
    with pytest.raises(InputError, match="1 of 1 runs are not finished"):
        replace(plan, merge=True).reproduce([job(2)])


def test_the_time_of_a_kind_is_measured_once(base, tmp_path, monkeypatch):
    said = []
    plan = ReproductionPlan(
        folder=tmp_path, workers=0, note=said.append, seeds=range(1), confirm=lambda expected: None,
        work=lambda jobs, workers: [],
    )  # fmt: skip
    first, second = (Job(tmp_path / name, resolve(base | {"proxy": proxy})) for name, proxy in
                     (("a", "identity"), ("b", {"name": "anchor-aware", "k": 2})))  # fmt: skip
    plan.reproduce([first])
    plan.reproduce([first, second])
    plan.reproduce([first, second])
    assert [words for words in said if "measured" in words] == ["forecast: 1 kind of runs is measured"] * 2
    assert len({words for words in said if words.startswith("forecast: 2 of 2 runs")}) == 1
    assert len(json.loads((tmp_path / MEASURED).read_text())["rates"]) == 2
