import json
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import aadml
from aadml.comparison.options import Share
from aadml.configuration.config import resolve
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.feature_extraction.ground.consent import consent_to
from aadml.feature_extraction.ground.errors import InputError
from aadml.proxies.unchanged import Unchanged
from aadml.runs.evaluate import evaluate
from aadml.runs.loading import load_run
from aadml.runs.scoring import Scoring
from aadml.runs.train import train_into
from aadml.studies.ablation_grid import run_folder
from aadml.studies.comparison_rows import ComparisonRow
from aadml.studies.execution import Execution
from aadml.studies.grid import Cell, Overrides
from aadml.studies.sweep import LOST, SweepOutcome, sweep
from aadml.studies.trials import RECORD, chosen_row, trials_of, tuned_rows, write_records


def row(values, space, name="row"):
    return ComparisonRow("methods", name, "", Cell(name, resolve(values)), space)


def test_trials_begin_with_the_row_itself_and_try_nothing_twice(base, tmp_path):
    space = {"training.learning_rate": [0.01, 0.1], "proxy.k": [3, 4]}
    trials = trials_of(row(base, space), 9, tmp_path)
    assert trials[0].settings == Overrides()
    assert len(trials) == 4  # the row's own config is one of the four points
    assert len({trial.job.config.yaml() for trial in trials}) == 4
    assert {trial.job.split for trial in trials} == {"valid"}
    drawn = [(0.01, 4), (0.1, 4), (0.1, 3)]  # as in earlier versions, whose trials are kept
    assert [tuple(trial.settings.values.values()) for trial in trials[1:]] == drawn
    misfit = replace(row(base, space | {"training.learning_rte": [0.1]}), control="half")
    assert [trial.job.config for trial in trials_of(misfit, 9, tmp_path)] == [trial.job.config for trial in trials]
    again = trials_of(row(base, space), 9, tmp_path)
    assert [trial.settings for trial in again] == [trial.settings for trial in trials]
    assert [trial.settings for trial in trials_of(row(base, space), 2, tmp_path)] == [
        trial.settings for trial in trials[:2]
    ]


class Smoothed(Unchanged):
    """Proxy from outside aadml with an option that no listed proxy has."""

    def __init__(self, dimension, modalities, *, share: Share = 0.5):
        super().__init__(dimension, modalities)


def test_an_option_of_an_own_proxy_is_tried_with_this_proxy_only(base, tmp_path):
    consent_to(place := f"{__name__}:Smoothed")
    of_own = row(base | {"proxy": place}, {"proxy": [place, "identity"], "proxy.share": [0.2, 0.5]})
    trials = trials_of(of_own, 9, tmp_path)
    tried = [(trial.config["proxy"]["name"], trial.config["proxy"].get("share")) for trial in trials]
    assert set(tried) == {(place, 0.5), (place, 0.2), ("identity", None)}
    assert len(tried) == 3
    outcomes = {trial.job.folder: SweepOutcome(trial.job) for trial in trials}
    without = next(trial for trial in trials if trial.config["proxy"]["name"] == "identity")
    assert chosen_row(of_own, trials, outcomes, 9, without).cell.config == without.config


def test_the_best_trial_on_validation_clips_gives_a_row_its_config_and_all_are_recorded(base, tmp_path, monkeypatch):
    space = {"proxy.k": [3, 4], "training.learning_rate": [0.1, 0.2]}
    rows = [row(base, space, "with"), replace(row(base | {"proxy": "identity"}, space, "without"), table="losses")]
    notes, folders = [], {}

    def work(jobs, workers):
        folders.update({job.folder.name: job for job in jobs})
        assert workers == 3
        return [SweepOutcome(job, "no disk" * (job.folder.name == "with_trial2")) for job in jobs]

    def score(folder):
        return SimpleNamespace(map_mean={"with_trial1": 0.5, "without_trial0": 0.5}.get(folder.name, 0.25))

    monkeypatch.setattr("aadml.studies.trials.read_evaluation", score)
    execution = Execution(folder=tmp_path, workers=3, work=work, note=notes.append)
    tuned, records, missing = tuned_rows(rows, 3, execution)
    assert notes == ["6 trials are scored on validation clips only"]
    assert list(folders) == [f"{name}_trial{n}" for name in ("with", "without") for n in range(3)]
    assert missing == {}
    best = folders["with_trial1"].config
    assert [one.cell.name for one in tuned] == ["with_trials3", "without_trials3"]
    assert [one.cell.config for one in tuned] == [best, rows[1].cell.config]
    assert list(records) == ["with_trials3", "without_trials3"]
    record = json.loads(records["with_trials3"])
    drawn = [trial.settings.values for trial in trials_of(rows[0], 3, tmp_path)]
    assert record == {
        "trials": [
            {"settings": {}, "valid map_mean": 0.25, "folder": "with_trial0"},
            {"settings": drawn[1], "valid map_mean": 0.5, "folder": "with_trial1"},
            {"settings": drawn[2], "failed": "no disk", "folder": "with_trial2"},
        ],
        "chosen": drawn[1],
        "seed": 0,
    }
    assert records["with_trials3"].startswith('{\n  "trials": [\n    {\n      "settings": {},\n')
    assert records["with_trials3"].endswith("}\n")
    without = json.loads(records["without_trials3"])["trials"]
    assert [list(trial["settings"]) for trial in without] == [[], *[["training.learning_rate"]] * 2]
    failed = [SweepOutcome(job, "no disk") for job in folders.values()]
    lost, *_ = tuned_rows(rows[:1], 3, replace(execution, work=lambda jobs, workers: failed))
    assert lost[0].cell.config == rows[0].cell.config
    alone, records, _ = tuned_rows([row(base, {}, "alone")], 3, execution)
    assert alone[0].cell.config == rows[0].cell.config
    assert [trial["folder"] for trial in json.loads(records["alone_trials3"])["trials"]] == ["alone_trial0"]


def test_a_row_with_a_lost_trial_is_not_run_until_the_trial_is_repeated(features, tmp_path):
    def killed(jobs, workers, name="c-cca_trial1"):
        lost = [job for job in jobs if job.folder.name == name]
        kept = [job for job in jobs if job not in lost]
        return sweep(kept, 0) + [SweepOutcome(job, f"{LOST}SIGKILL (out of memory?)") for job in lost]

    settings = {"inputs.scaling": "none"}
    common = {"data": features, "methods": "random,c-cca", "seeds": 2, "trials": 2, "settings": settings, "workers": 0}
    result = aadml.compare(**common, output=tmp_path / "out", work=killed)
    assert result.failed == 2
    assert "c-cca, seed 0, failed: c-cca_trial1 is missing (the process ended with SIGKILL" in str(result)
    assert "run the same command again, with fewer --workers if the memory was full" in str(result)
    assert len(list((tmp_path / "out" / "runs").iterdir())) == 2
    again = aadml.compare(**common, output=tmp_path / "out")
    assert again.failed == 0
    assert [outcome.was_finished for outcome in again.outcomes] == [True, False, True, False]
    expected = aadml.compare(**common, output=tmp_path / "other")
    assert again.scores["c-cca"].maps().tolist() == expected.scores["c-cca"].maps().tolist()
    (tmp_path / "killed" / "trials" / "c-cca_trial1").mkdir(parents=True)
    (tmp_path / "killed" / "trials" / "c-cca_trial1" / "failure.txt").write_bytes(b"\xff\xfe")
    for failed in (2, 0, 0):  # a trial that is lost in a second call counts as failed
        result = aadml.compare(**common, output=tmp_path / "killed", work=partial(killed, name="c-cca_trial0"))
        assert result.failed == failed
    record = json.loads(next((tmp_path / "killed").rglob("c-cca_trials2_seed0/trials.json")).read_text())
    assert [trial.get("failed") for trial in record["trials"]] == [f"{LOST}SIGKILL (out of memory?)", None]


def test_the_options_of_a_row_are_chosen_once(features, tmp_path, monkeypatch):
    best = {"c-cca_trial0": 0.1, "c-cca_trial1": 0.9, "c-cca_trial2": 0.5}
    monkeypatch.setattr("aadml.studies.trials._score", lambda trial: best[trial.job.folder.name])

    def failing(jobs, workers):
        failed = [job for job in jobs if job.folder.name == "c-cca_trial1"]
        for job in failed:
            job.folder.mkdir(parents=True)
            (job.folder / "failure.txt").write_text("no disk\nTraceback")
        return [
            *sweep([job for job in jobs if job not in failed], 0),
            *(SweepOutcome(job, "no disk") for job in failed),
        ]

    settings, notes = {"inputs.scaling": "none"}, []
    common = {"data": features, "methods": "c-cca", "trials": 3, "settings": settings, "workers": 0}
    first = aadml.compare(**common, seeds=1, output=tmp_path / "out", work=failing)
    record = json.loads((tmp_path / "out" / "runs" / "c-cca_trials3_seed0" / "trials.json").read_text())
    again = aadml.compare(**common, seeds=2, output=tmp_path / "out", on_note=notes.append)
    assert again.failed == 0
    assert (
        "the options of rows with runs are kept, although trials failed (c-cca_trial0, c-cca_trial1); to choose again, "
        "pass another --output"
    ) in notes
    assert again.scores["c-cca"].maps()[0] == first.scores["c-cca"].maps()[0]
    for seed in range(2):
        kept = json.loads((tmp_path / "out" / "runs" / f"c-cca_trials3_seed{seed}" / "trials.json").read_text())
        assert kept == record
    assert record["chosen"] == record["trials"][2]["settings"]
    assert record["trials"][1]["failed"] == "no disk"
    other = {**common, "settings": {**settings, "method.dimension": 2}}
    with pytest.raises(InputError, match="contains a run of a different config"):
        aadml.compare(**other, seeds=1, output=tmp_path / "out")


def test_a_space_that_does_not_fit_is_refused(base, tmp_path):
    with pytest.raises(InputError, match="learning_rte"):
        trials_of(row(base, {"training.learning_rte": [0.1]}), 3, tmp_path)


def test_a_trial_of_a_closed_form_is_not_fitted_on_the_clips_it_is_scored_on(features, tmp_path):
    config = resolve({"method": {"name": "cca", "dimension": 2}, "data": str(features), "inputs": {"scaling": "none"}})
    stored = train_into(config, tmp_path / "trial", Scoring("valid")).evaluation
    assert stored["split"] == "valid"
    run = load_run(tmp_path / "trial")
    splits, mean = run.splits, run.model.method.state()["mean.audio"]
    torch.testing.assert_close(mean, splits.train.matrix("audio").double().mean(0), rtol=1e-6, atol=1e-8)
    train_into(config, tmp_path / "run")
    whole = torch.cat([splits.train.matrix("audio"), splits.valid.matrix("audio")]).double().mean(0)
    mean = load_run(tmp_path / "run").model.method.state()["mean.audio"]
    torch.testing.assert_close(mean, whole, rtol=1e-6, atol=1e-8)


def test_unseen_classes_carry_their_protocol_and_no_accuracy(base, tmp_path):
    data = tmp_path / "six.h5"
    write_features(data, synthetic(classes=6, train=60, valid=12, test=24, dimensions=(6, 8), difficulty=0.2))
    config = resolve(base | {"data": str(data), "unseen_classes": 0.3})
    stored = train_into(config, tmp_path / "run", Scoring(queries=True)).evaluation
    assert stored["protocol"] == "unseen-classes"
    assert "label_space" not in stored
    splits = load_run(tmp_path / "run").splits
    assert not set(splits.train.class_names) & set(splits.test.class_names)
    assert evaluate(tmp_path / "run").protocol == "unseen-classes"
    assert json.loads((tmp_path / "run" / "evaluations" / "unseen-classes-test.json").read_text())["map_mean"] == (
        pytest.approx(stored["map_mean"])
    )
    closed = resolve({"method": {"name": "c-cca", "dimension": 2}, "data": str(data), "unseen_classes": 0.3})
    assert np.isfinite(train_into(closed, tmp_path / "closed").evaluation["map_mean"])


def test_the_protocol_of_unseen_classes_refuses_a_run_that_saw_them(base, tmp_path):
    train_into(resolve(base), tmp_path / "run")
    with pytest.raises(InputError, match="was trained on the classes class 0"):
        evaluate(tmp_path / "run", protocol="unseen-classes")


def test_few_training_clips_are_a_config_value(base, tmp_path):
    train_into(resolve(base | {"train_per_class": 4, "validation": 0.5}), tmp_path / "run")
    clips = json.loads((tmp_path / "run" / "environment.json").read_text())["clips"]
    assert clips == {"train": 16, "valid": 8, "test": 24}


@pytest.mark.parametrize(
    ("key", "value"), [("train_per_class", 0), ("train_per_class", "all"), ("unseen_classes", 1.5)]
)
def test_values_without_sense_are_refused(base, key, value):
    with pytest.raises(InputError, match=key):
        resolve(base | {key: value})


def test_records_are_written_into_the_folders_of_the_runs_that_are_there(base, tmp_path):
    cells = [Cell(name, resolve(base)) for name in ("tuned", "plain")]
    there = [run_folder(tmp_path, cell, seed) for cell in cells for seed in (0, 1)]
    for folder in there:
        folder.mkdir(parents=True)
    write_records({"tuned": "the trials"}, cells, range(3), tmp_path)
    assert [path.read_text() for path in sorted(tmp_path.rglob(RECORD))] == ["the trials"] * 2
    assert {path.parent for path in tmp_path.rglob(RECORD)} == set(there[:2])
