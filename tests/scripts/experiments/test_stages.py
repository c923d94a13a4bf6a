"""The stages of the plan that explain: readings, shares, pairs and few labels, all methods; and the shipped rows."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from aadml.configuration.config import resolve
from aadml.configuration.files import ConfigFile, open_config
from aadml.studies.comparison_rows import published_methods
from aadml.studies.control_rows import AFFINE, RANDOM
from aadml.studies.forecast import Rate, forecast
from aadml.studies.grid import Overrides
from scripts.experiments.anchor_aware.contenders import (
    ANCHOR_AWARE,
    CONTENDERS,
    NARROW,
    NO_METRIC,
    PARTNER,
    READINGS,
    SUMS_ALONE,
    is_removed,
)
from scripts.experiments.anchor_aware.essence import essence
from scripts.experiments.anchor_aware.execution import REMOVED, _done, forecast_in_words
from scripts.experiments.anchor_aware.experiment import STEPS, DataSet, Experiment
from scripts.experiments.anchor_aware.ledger import Ledger, Row
from scripts.experiments.anchor_aware.search import MAIN, SEARCHES, Round
from scripts.experiments.anchor_aware.sets import read_facts
from scripts.experiments.anchor_aware.shipped import ALONE, CAP, NEIGHBORS, few
from scripts.experiments.anchor_aware.stages import STAGES, runs_of

SHIPPED = Path(__file__).parents[3] / "docs" / "lab" / "experiments"
BASE = Overrides(NARROW).within(ConfigFile({**open_config("aadml").values, "data": "x.h5"})).values
SET = DataSet(BASE, 7, 304)


def experiment(folder, **options):
    return Experiment({"toy": SET}, 40, Ledger((folder,)), {"drawn": SET}, **options)


def finish(one, stage, score):
    """Give every run of a stage a row whose validation MAP is what `score` says of (method, options)."""
    rows = [
        Row(data_set=run.key.data_set, method=run.key.method, options=run.key.options, seed=run.key.seed,
            steps=10, valid_map=score(run.key.method, json.loads(run.key.options)), test_map=0.5)
        for run in runs_of(stage, one)
    ]  # fmt: skip
    one.ledger.add(stage, rows, {row.key: np.array([0.5]) for row in rows})


@pytest.mark.parametrize("stage", [stage for stage in STAGES if (SHIPPED / f"{stage}.csv").is_file()])
def test_every_shipped_row_is_of_a_run_that_the_stage_still_asks_for(stage):
    ledger = Ledger((SHIPPED,))
    facts = read_facts(SHIPPED)  # how many steps an epoch has decides what a capped schedule is
    given = {row.data_set: replace(SET, clips=facts[row.data_set].train) for row in ledger.rows(stage)}
    whole = Experiment(given, 40, ledger, given)
    assert {row.key for row in ledger.rows(stage)} <= {run.key for run in runs_of(stage, whole)}


def test_readings_are_held_to_what_the_paper_writes_and_differ_as_trainings(tmp_path):
    runs = runs_of("readings-1", experiment(tmp_path))
    assert len(runs) == 4 * (len(READINGS) + 2)
    paper = resolve({**open_config("paper_r3_detached").values, "data": "x.h5"})
    for run in runs:
        config = run.config
        assert config["label_loss"] == paper["label_loss"]
        assert config["inputs"] == paper["inputs"]
        assert [config["loss"][key] for key in ("name", "reduction", "combine")] == ["triplet", "sum", "sum"]
        if run.key.method in READINGS:
            same = ("query", "residual", "aa_mix", "aa_on")
            assert {key: config["proxy"][key] for key in same} == {key: paper["proxy"][key] for key in same}
    assert {run.split for run in runs} == {"valid"}
    options = {run.key: json.loads(run.key.options) for run in runs}
    removed = {run.key.method for run in runs if is_removed(options[run.key])}
    assert removed == {"R2, live"}
    by_rate = [run for run in runs if options[run.key]["training.learning_rate"] == 1e-4]
    trained = [run.config for run in by_rate if run.key.method not in removed]
    assert len({essence(config).yaml() for config in trained}) == len(trained) == len(READINGS) + 1


def test_a_removed_reading_is_written_as_failed_and_not_trained(tmp_path):
    one = experiment(tmp_path)
    runs = [run for run in runs_of("readings-1", one) if run.key.method == "R2, live"]
    assert _done(runs, one.ledger, SimpleNamespace(folder=tmp_path, workers=0, work=lambda jobs, _: jobs)) == []
    assert {row.failed for row in one.ledger.rows("readings-1")} == {REMOVED}
    assert {row.key for row in one.ledger.rows("readings-1")} == {run.key for run in runs}


def test_the_best_readings_go_on_beside_both_controls_at_their_best_rates(tmp_path):
    one = experiment(tmp_path)
    assert runs_of("readings-2", one) == []
    best = ["R5, live", "R2, live", "R1 (R4)"]

    def score(method, options):
        if method == "R6, live":
            return None  # failed
        rate = options["training.learning_rate"]
        return (0.5 - 0.1 * best.index(method) if method in best else 0.1) - abs(rate - 3e-4)

    finish(one, "readings-1", score)
    runs = runs_of("readings-2", one)
    assert {run.key.method for run in runs} == {*best, NO_METRIC, SUMS_ALONE}
    assert len(runs) == 5 * 10
    assert {run.config.training.learning_rate for run in runs} == {3e-4}
    weights = {run.key.method: run.config["loss"]["weight"] for run in runs}
    assert {method for method, weight in weights.items() if weight == 0} == {NO_METRIC}


def test_shares_are_of_the_drawn_sets_alone(tmp_path):
    one = experiment(tmp_path)
    first = runs_of("shares-1a", one)
    assert {run.key.data_set for run in first} == {"drawn"}
    asked = {run.config["proxy"]["reading"] for run in first if run.key.method == PARTNER}
    assert asked <= {"R3", "R5", "R6"}
    for stage in ("shares-1a", "shares-1b"):
        finish(one, stage, lambda method, options: options["training.learning_rate"])
    finals = runs_of("shares-2", one)
    assert len(finals) == 3 * 8
    queries = {run.key.method: run.config["proxy"].get("query") for run in finals}
    assert (queries[PARTNER], queries[ANCHOR_AWARE]) == ("partner", "self")
    assert {run.key.data_set for stage in ("readings-1", "stage-5") for run in runs_of(stage, one)} == {"toy"}


def test_pairs_are_of_natural_pairs_alone_and_no_label_acts(tmp_path):
    one = experiment(tmp_path)
    runs = runs_of("stage-6-pairs", one)
    assert len(runs) == 5 * 10
    assert {run.config.common.relevance for run in runs} == {"own"}
    by_method = {run.key.method: run.config for run in runs}
    alone, graph = by_method[ALONE], by_method[NEIGHBORS]
    assert [alone["neighbors"]["positives"], graph["neighbors"]["positives"]] == ["none", "agreeing"]
    assert by_method["random neighbors"]["neighbors"]["control"] == "random"
    assert by_method["AA proxies"].prefix == "aa-"
    shipped = resolve({**open_config("pairs").values, "data": "x.h5"})
    assert replace(alone.training, train_map=0) == replace(shipped.training, train_map=0)
    drawn = replace(one, sets={"av_digits": SET})
    assert runs_of("stage-6-pairs", drawn) == runs_of("stage-6-few-labels", drawn) == []


def test_few_labels_are_counted_a_class_and_the_control_learns_of_them_alone(tmp_path):
    runs = runs_of("stage-6-few-labels", experiment(tmp_path))
    by_method = {run.key.method: run.config for run in runs}
    assert len(runs) == 10 * len(by_method) == 10 * 2 * 4
    for count in (4, 12):
        own = [by_method[few(name, count)] for name in ("labels alone", ALONE, NEIGHBORS, "random neighbors")]
        assert {(config.common.train_per_class, config.common.unlabelled) for config in own} == {(count, "keep")}
        assert [config["loss"]["weight"] for config in own] == [0.0, 1.0, 1.0, 1.0]


def test_methods_have_their_own_schedules_and_capped_ones_stand_apart(tmp_path):
    one = experiment(tmp_path)
    whole, capped = runs_of("stage-5", one), runs_of("stage-5-capped", one)
    assert {run.key.method for run in whole} == set(published_methods())
    assert len(whole) == 3 * len(published_methods())
    for run in whole:
        own = resolve({**open_config(run.key.method.replace("-", "_")).values, "data": "x.h5"})
        assert json.loads(run.key.options) == {"training.epochs": run.config.training.epochs}
        assert replace(run.config.training, train_map=0) == replace(own.training, train_map=0)
        assert [run.config.sections, run.config.inputs] == [own.sections, own.inputs]
    longer = {run.key.method for run in capped}
    steps = {run.key.method: run.config.training.epochs * -(-304 // run.config.training.batch) for run in whole}
    assert longer == {method for method, count in steps.items() if count > CAP} != set()
    for run in capped:
        assert run.config.training.epochs * -(-304 // run.config.training.batch) <= CAP


def test_a_setting_reaches_the_shipped_configs_that_have_its_key():
    data_set = replace(SET, changes=Overrides({"network.hidden": [4]}), max_epochs=2)
    found = data_set.shipped(["aadml", "cca"])
    assert found["aadml"]["network"]["hidden"] == (4,)
    assert "network" not in found["cca"].sections
    assert found["aadml"].training.epochs == 2


@pytest.mark.parametrize(("reading", "gone"), [("R1", {RANDOM, AFFINE}), ("R5", set())])
def test_a_control_that_is_the_same_training_as_the_chosen_one_is_not_run(tmp_path, monkeypatch, reading, gone):
    few_rounds = (Round("1a", 2, 140, 0), Round("1b", 1, 420, 1), Round("1c", 1, 840, 2))
    methods = dict(CONTENDERS)
    space = {**methods[ANCHOR_AWARE].space, "proxy.reading": (reading,), "proxy.attention": ("mha",)}
    methods[ANCHOR_AWARE] = replace(methods[ANCHOR_AWARE], space=space)
    monkeypatch.setitem(SEARCHES, MAIN, replace(SEARCHES[MAIN], methods=methods, rounds=few_rounds))
    one = experiment(tmp_path)
    for last in few_rounds:
        finish(one, MAIN + last.ending, lambda method, options: options["training.learning_rate"])
    run = {run.key.method.removeprefix(f"{ANCHOR_AWARE}, ") for run in runs_of("stage-3", one)}
    assert {RANDOM, AFFINE} - run == gone
    assert len(run) == 8 - len(gone)


def test_a_forecast_measures_every_method_once_and_adds_up(tmp_path, monkeypatch):
    measured = []

    def rates(examples, workers, note):
        measured.extend(examples)
        return dict.fromkeys(examples, Rate(clips=304, step=0.5, fixed=10.0))

    monkeypatch.setattr("aadml.studies.forecast.measured_rates", rates)
    runs = runs_of("stage-1a", experiment(tmp_path))
    jobs = [run.job(tmp_path) for run in runs]
    kinds = {str(job.folder): run.key.method for job, run in zip(jobs, runs, strict=True)}
    said = forecast_in_words(runs, forecast(jobs, 2, kinds=kinds))
    assert len(measured) == 3
    seconds = 81 * (10 + 20 * 7 * 0.5) / 2  # 140 steps of 7 an epoch
    assert f"81 runs are known to be needed (stage-1a 81), at most about {seconds / 60:.0f} min on 2 workers" in said
    assert runs[0].config.training.epochs == 20
    assert STEPS == 3600
