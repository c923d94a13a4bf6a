import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from aadml.comparison.clips import Clips
from aadml.configuration.config import resolve
from aadml.feature_extraction.ground.errors import InputError
from aadml.methods.training.session import Session
from aadml.runs.data import load_splits
from aadml.studies import forecast as forecasting
from aadml.studies.forecast import Forecast, Rate, forecast, in_words, measure, measured_rates
from aadml.studies.grid import Overrides
from aadml.studies.job import Job


def test_a_forecast_adds_up_and_long_runs_come_first(base, tmp_path):
    config = resolve(base)
    jobs = [Job(tmp_path / name, config) for name in "abc"]
    estimate = Forecast({str(job.folder): cost for job, cost in zip(jobs, (10, 30, 20), strict=True)}, 4, 2)
    assert [replace(estimate, workers=count).wall for count in (0, 1, 2, 3)] == [60, 60, 30, 30]
    assert Forecast({}, 4, 2).wall == 0
    assert [job.folder.name for job in estimate.longest_first(jobs)] == ["b", "c", "a"]
    end = "(from 4 steps of each kind of run)"
    places = {0: "60 s in this process", 1: "60 s on 1 worker", 2: "30 s on 2 workers"}
    for count, place in places.items():
        assert replace(estimate, workers=count).sentence() == f"3 of 7 runs remain, about {place} {end}"
    assert replace(estimate, finished=0).sentence() == f"3 of 3 runs remain, about 30 s on 2 workers {end}"
    rate = Rate(clips=60, step=2.0, epoch=1.0, look=0.5, fixed=3.0)
    epochs, steps = config.training.epochs, 3
    assert rate.seconds(Job(tmp_path, config, diagnosis=1)) == 3 + epochs * (steps * 2 + 1) + (epochs + 1) * 0.5
    assert [in_words(s) for s in (0.1, 89, 90, 5399, 5400)] == ["1 s", "89 s", "2 min", "90 min", "1.5 h"]


def test_every_kind_of_run_is_measured_once_and_finished_ones_cost_nothing(base, tmp_path, monkeypatch):
    seen = []

    def counted(config, splits):
        seen.append(config.label())
        return measure(config, splits)

    monkeypatch.setattr("aadml.studies.forecast.measure", counted)
    kinds = [base | {"proxy": {"name": "anchor-aware", "k": k}} for k in (1, 2)] + [base | {"proxy": "identity"}]
    jobs = [Job(tmp_path / f"{n}-{s}", resolve(values | {"seed": s})) for n, values in enumerate(kinds) for s in (0, 1)]
    estimate = forecast(jobs, 1)
    assert len(seen) == 2
    assert len(estimate.seconds) == 6
    assert all(one > 0 for one in estimate.seconds.values())


def test_rows_that_cannot_be_trained_are_named_by_reason_and_count_as_nothing(features, tmp_path):
    def job(name, dimension, seed):
        values = {"method": {"name": "cca", "dimension": dimension}, "data": str(features), "seed": seed}
        return Job(tmp_path / f"{name}_seed{seed}", resolve(values))

    failing = [job(name, size, seed) for name, size in (("wide", 500), ("wider", 600)) for seed in (0, 1)]
    notes, trained = [], job("narrow", 2, 0)
    estimate = forecast([*failing, trained], 1, notes.append)
    assert estimate.seconds.keys() == {str(trained.folder)}
    assert estimate.impossible.keys() == {str(job.folder) for job in failing}
    named = "of 5 runs cannot be trained"
    assert notes[1].startswith(f"2 {named} (wide): ")
    assert notes[2].startswith(f"2 {named} (wider): ")
    assert len(notes) == 3
    assert forecast(failing, 1).impossible == estimate.impossible


@pytest.mark.slow
def test_kinds_are_measured_by_as_many_processes_as_will_train(base, features, tmp_path):
    notes = []
    cca = {"method": {"name": "cca", "dimension": 500}, "data": str(features)}
    kinds = {"plain": base | {"proxy": "identity"}, "anchored": base, "cca": cca}
    jobs = [Job(tmp_path / name, resolve(values)) for name, values in kinds.items()]
    estimate = forecast(jobs, 2, notes.append)
    assert estimate.workers == 2
    assert estimate.seconds.keys() == {str(job.folder) for job in jobs[:2]}
    assert min(estimate.seconds.values()) > Rate().seconds(jobs[0])
    assert notes[0] == "forecast: 3 kinds of runs are measured"
    assert len(notes) == 2
    assert "cannot be trained (cca)" in notes[1]


@pytest.mark.slow
def test_one_kind_on_two_workers_is_measured_once(features, tmp_path):
    notes = []
    values = {"method": {"name": "cca", "dimension": 500}, "data": str(features)}
    jobs = [Job(tmp_path / str(seed), resolve(values | {"seed": seed})) for seed in (0, 1)]
    assert len(forecast(jobs, 2, notes.append).impossible) == 2
    assert notes[0] == "forecast: 1 kind of runs is measured"


@pytest.mark.slow
def test_data_that_cannot_be_read_end_a_forecast_in_processes_too(base, tmp_path):
    jobs = [Job(tmp_path / str(seed), resolve(base | {"data": "none.h5", "seed": seed})) for seed in (0, 1)]
    with pytest.raises(InputError, match=r"none\.h5"):
        forecast(jobs, 2)


def test_measuring_leaves_the_number_of_threads_and_fits_closed_forms_whole(base, features):
    config = resolve({"method": {"name": "cca", "dimension": 2}, "data": str(features)})
    rate = measure(config, load_splits(config))
    assert rate.step == 0
    assert rate.fixed > 0
    assert Session().history == []


@pytest.mark.parametrize(("workers", "processes"), [(0, 0), (1, 0), (2, 2), (3, 3)])
def test_kinds_are_measured_here_or_by_as_many_processes_as_will_train(base, monkeypatch, workers, processes):
    asked, notes = [], []

    def measured(work, tasks, count):
        asked.append(count)
        return [(task, Rate()) for task in tasks]

    monkeypatch.setattr(forecasting, "in_processes", measured)
    config = resolve(base)
    assert measured_rates({"a": config, "b": config}, workers, notes.append) == {"a": Rate(), "b": Rate()}
    assert (asked, notes) == ([processes], ["forecast: 2 kinds of runs are measured"])


class Timed:
    """A method of two epochs, of which the first is slower, and of one step of a second for each batch."""

    learner = None

    def __init__(self, clock, steps):
        self.clock, self.steps, self.fitted = clock, steps, []

    def fit(self, train, valid, watch):
        self.fitted.append((len(train), len(valid)))
        for seconds in (9.0, 4.0):
            self.clock[0] += seconds
            watch.log({"seconds": 1.0, "steps": self.steps}, "weights")


@pytest.mark.parametrize(("train_map", "measured", "steps", "step"), [(0, 0, 2, 0.5), (1, 1, 1, 1.0), (2, 0, 0, 1.0)])
def test_a_measurement_is_of_the_second_epoch_of_two_batches(base, monkeypatch, train_map, measured, steps, step):
    clock = [0.0]
    method, configs = Timed(clock, steps), []

    def look(epoch, weights):
        clock[0] += 0.5

    def untrained(config, splits, device):
        configs.append(config)
        return SimpleNamespace(scaling=SimpleNamespace(clips=lambda clips: clips), method=method)

    monkeypatch.setattr(forecasting.time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(forecasting, "untrained_model", untrained)
    monkeypatch.setattr(forecasting, "Diagnosis", lambda test, every: look)
    config = Overrides({"training.batch": 9, "training.train_map": train_map}).applied(resolve(base))
    splits = load_splits(config)
    assert measure(config, splits) == Rate(len(splits.train), step=step, epoch=3.0, look=0.5, fixed=1.0)
    assert method.fitted == [(18, len(splits.valid))]
    assert [(of.training.epochs, of.training.train_map) for of in configs] == [(2, measured)]
    del Timed.learner
    try:
        measure(config, splits)
    finally:
        Timed.learner = None
    assert method.fitted[1] == (len(splits.train), len(splits.valid))


def test_of_sound_and_captions_32_clips_are_scored():
    class Sounds(list):
        features = SimpleNamespace(values=lambda: ["a sound"])

        def select(self, rows):
            return rows.tolist()

    assert forecasting._some(Sounds(range(100))) == (list(range(32)), 100 / 32)
    assert [forecasting._some(Sounds(range(count)))[1] for count in (0, 1, 5)] == [0.0, 1.0, 1.0]
    assert forecasting._some(Sounds(range(5)))[0] == list(range(5))
    clips = Clips.of([0, 1], audio=torch.ones(2, 3), visual=torch.ones(2, 3))
    assert forecasting._some(clips) == (clips, 1.0)


def test_the_first_waiting_run_of_a_kind_is_measured_and_no_more_workers_are_counted_than_runs(
    base, tmp_path, monkeypatch
):
    measured = []

    def rates(examples, workers, note):
        measured.append((examples, workers))
        return dict.fromkeys(examples, Rate(fixed=3.0))

    monkeypatch.setattr(forecasting, "measured_rates", rates)
    monkeypatch.setattr(forecasting, "is_done", lambda job: job.folder.name == "done")
    prior = resolve(base | {"loss": "hinge"})
    jobs = [Job(tmp_path / name, resolve(base | {"seed": n})) for n, name in enumerate(("done", "first", "second"))]
    jobs.append(Job(tmp_path / "third", resolve(base), needs=Job(tmp_path / "prior", prior)))
    kinds = {str(job.folder): "one" for job in jobs[:3]} | {str(jobs[3].folder): "two"}
    estimate = forecast(jobs, 5, kinds=kinds, kept=tmp_path / "kept.json")
    assert measured == [({"one": jobs[1].config, "two": prior}, 5)]
    assert (estimate.finished, estimate.workers, list(estimate.seconds.values())) == (1, 3, [3.0] * 3)
    assert sorted(json.loads((tmp_path / "kept.json").read_bytes())["rates"]) == [
        "310f93f54bd5c749",
        "7f0f6e8a0dc6cc24",
    ]
    again = forecast(jobs[:2], 5, kinds=kinds, kept=tmp_path / "kept.json")
    assert (len(measured), again.workers, again.seconds) == (1, 1, {str(jobs[1].folder): 3.0})
    assert forecast(jobs[:1], 5) == Forecast({}, 1, 1)
