"""The stages of the plan: what each asks for, by what is in the ledger."""

import json
from dataclasses import replace

import numpy as np
import pytest

from aadml.configuration.files import ConfigFile, open_config
from aadml.feature_extraction.ground.errors import InputError
from aadml.studies.grid import Overrides
from scripts.experiments.anchor_aware import finals
from scripts.experiments.anchor_aware.contenders import (
    ANCHOR_AWARE,
    CONTENDERS,
    MEMORY,
    NARROW,
    PLAIN,
    RIVALS,
    drawn_points,
)
from scripts.experiments.anchor_aware.experiment import PATIENCE, STEPS, DataSet, Experiment
from scripts.experiments.anchor_aware.finals import ANSWERING, seeds_needed
from scripts.experiments.anchor_aware.ledger import Ledger, Row
from scripts.experiments.anchor_aware.search import HALVING, SEARCHES, chosen_options
from scripts.experiments.anchor_aware.sets import SetFacts, keep_facts, read_facts
from scripts.experiments.anchor_aware.stages import STAGES, chosen_stages, runs_of

BASE = Overrides(NARROW).within(ConfigFile({**open_config("aadml").values, "data": "x.h5"})).values
SET = DataSet(BASE, 7, 350)


@pytest.fixture(autouse=True)
def few_points(monkeypatch):
    """Rounds of six, three and two points instead of the plan's."""
    few = [replace(one, kept=kept) for one, kept in zip(HALVING, (6, 3, 2), strict=True)]
    for prefix in ("stage-", "rivals-"):
        monkeypatch.setitem(SEARCHES, prefix, replace(SEARCHES[prefix], rounds=tuple(few)))


@pytest.fixture
def experiment(tmp_path):
    return Experiment({"toy": SET}, 40, Ledger((tmp_path,)))


def finish(experiment, stage, score):
    """Give every run of a stage a row; its validation and test MAP are what `score` says of (method, options, seed)."""
    rows = []
    for run in runs_of(stage, experiment):
        key = run.key
        valid, test = score(key.method, json.loads(key.options), key.seed)
        rows.append(Row(data_set=key.data_set, method=key.method, options=key.options, seed=key.seed, steps=10,
                        valid_map=valid, test_map=test))  # fmt: skip
    experiment.ledger.add(stage, rows, {row.key: np.array([row.test_map or 0.0]) for row in rows})
    return rows


def rate(method, options, seed):
    return options["training.learning_rate"] + options["loss.margin"] / 1e6, None


def search(experiment, score=rate):
    for one in HALVING:
        finish(experiment, f"stage-{one.ending}", score)


@pytest.mark.parametrize("name", [*CONTENDERS, *RIVALS])
def test_every_method_has_the_same_number_of_points_none_twice_each_of_its_space(name):
    contender = {**CONTENDERS, **RIVALS}[name]
    points = drawn_points(name, contender, BASE, 27)
    assert len({json.dumps(point) for point in points}) == len(points) == 27
    assert points[:5] == drawn_points(name, contender, BASE, 5)
    for point in points:
        assert point.keys() == contender.whole_space.keys()
        assert all(value in contender.whole_space[key] for key, value in point.items())


def test_a_point_that_its_config_refuses_is_left_out():
    contender = replace(CONTENDERS[PLAIN], space={"loss.margin": (1.2, "wide")})
    points = drawn_points(PLAIN, contender, BASE, 1000)
    assert {point["loss.margin"] for point in points} == {1.2}
    assert len(points) == 4 * 3 * 2


def test_successive_halving_keeps_the_best_by_validation_map(experiment):
    first = finish(experiment, "stage-1a", rate)
    assert len(first) == 3 * 6
    second = runs_of("stage-1b", experiment)
    for method in CONTENDERS:
        ranked = sorted((row for row in first if row.method == method), key=lambda row: -row.valid_map)
        kept = {run.key.options for run in second if run.key.method == method}
        assert len(kept) == 3
        assert kept == {row.options for row in ranked[:3]}
    assert {run.split for stage in ("stage-1a", "stage-1b") for run in runs_of(stage, experiment)} == {"valid"}
    assert {run.key.seed for run in second} == {1}


def test_a_round_waits_for_the_whole_round_before(experiment):
    rows = finish(experiment, "stage-1a", rate)
    path = experiment.ledger.folders[0] / "stage-1a.csv"
    path.unlink()
    experiment.ledger.add("stage-1a", [row for row in rows if row.method != PLAIN] + rows[:5], {})
    assert PLAIN not in {run.key.method for run in runs_of("stage-1b", experiment)}
    assert {run.key.method for run in runs_of("stage-1b", experiment)} == {ANCHOR_AWARE, MEMORY}


def test_options_are_chosen_by_the_mean_of_the_last_rounds_and_a_failure_is_never_chosen(experiment):
    search(experiment, lambda method, options, seed: (rate(method, options, seed)[0] * (1 if seed < 2 else -2), None))
    for method in CONTENDERS:
        rows = {name: [row for row in experiment.ledger.rows(f"stage-{name}") if row.method == method]
                for name in ("1b", "1c")}  # fmt: skip
        means = {row.options: (row.valid_map + next(b.valid_map for b in rows["1b"] if b.options == row.options)) / 2
                 for row in rows["1c"]}  # fmt: skip
        assert chosen_options("stage-", "toy", method, experiment.ledger) == json.loads(max(means, key=means.get))
    failed = [replace(row, valid_map=None, failed="broke") for row in experiment.ledger.rows("stage-1c")]
    best = chosen_options("stage-", "toy", PLAIN, experiment.ledger)
    experiment.ledger.add("stage-1c", [row for row in failed if json.loads(row.options) == best], {})
    assert chosen_options("stage-", "toy", PLAIN, experiment.ledger) not in (None, best)


def test_finalists_train_to_the_last_step_or_to_the_stop_and_aa_is_scored_under_the_bank_too(experiment):
    search(experiment)
    finals, full = runs_of("stage-2", experiment), runs_of("full", experiment)
    assert [run.key.seed for run in finals] == [seed for seed in range(100, 110) for _ in CONTENDERS]
    assert {run.config.training.epochs for run in finals + full} == {-(-STEPS // 7)}
    assert {run.config.training.patience for run in finals} == {-(-PATIENCE // 7)}
    assert {run.config.training.patience for run in full} == {0}
    assert {run.key.method for run in finals if run.protocols} == {ANCHOR_AWARE}
    assert {run.split for run in finals} == {"test"}
    for run in finals:
        assert run.key.options == json.dumps(chosen_options("stage-", "toy", run.key.method, experiment.ledger),
                                             sort_keys=True)  # fmt: skip


def by_method(spread, shift):
    generator = np.random.default_rng(0)
    return lambda method, options, seed: (0.5, 0.5 + shift[method] + spread * generator.standard_normal())


@pytest.mark.parametrize(
    ("spread", "shift", "seeds"),
    [(0.001, {PLAIN: 0.0, ANCHOR_AWARE: -0.1, MEMORY: 0.0}, 10),  # decided: below
     (0.001, {PLAIN: 0.0, ANCHOR_AWARE: 0.0, MEMORY: 0.0}, 10),  # decided: equal
     (0.1, {PLAIN: 0.0, ANCHOR_AWARE: 0.0, MEMORY: 0.0}, 20)],
)  # fmt: skip
def test_the_sequential_rule_goes_on_where_a_look_decides_nothing(experiment, spread, shift, seeds):
    search(experiment)
    finish(experiment, "stage-2", by_method(spread, shift))
    assert seeds_needed("toy", experiment) == seeds
    assert len(runs_of("stage-2", experiment)) == 3 * seeds


def test_a_look_waits_for_all_of_its_seeds_and_a_failed_one_is_not_waited_for(experiment):
    search(experiment)
    rows = finish(experiment, "stage-2", by_method(0.1, dict.fromkeys(CONTENDERS, 0.0)))
    (experiment.ledger.folders[0] / "stage-2.csv").unlink()
    experiment.ledger.add("stage-2", rows[:-1], {})
    assert seeds_needed("toy", experiment) == 10
    experiment.ledger.add("stage-2", [replace(rows[-1], test_map=None, failed="broke")], {})
    assert seeds_needed("toy", experiment) == 20


def test_seeds_are_limited_where_fewer_are_asked_for(experiment):
    few = replace(experiment, seeds=4)
    search(few)
    finish(few, "stage-2", by_method(0.1, dict.fromkeys(CONTENDERS, 0.0)))
    assert [len(runs_of(stage, few)) for stage in ("stage-2", "full")] == [12, 9]
    assert {run.key.seed for run in runs_of("stage-3", few)} == {100, 101, 102, 103}


def test_controls_are_of_the_chosen_options_and_none_is_the_chosen_training_itself(experiment):
    search(experiment)
    runs = runs_of("stage-3", experiment)
    chosen = SET.config(ANCHOR_AWARE, chosen_options("stage-", "toy", ANCHOR_AWARE, experiment.ledger), STEPS)
    assert len({run.key.method for run in runs}) >= 5
    for run in runs:
        assert run.config.seeded(0) != chosen
        assert run.config.training == chosen.training
        assert run.key.method.startswith(f"{ANCHOR_AWARE}, ")


def test_controls_that_answer_take_the_seeds_of_the_last_look(experiment):
    search(experiment)
    finish(experiment, "stage-2", by_method(0.1, dict.fromkeys(CONTENDERS, 0.0)))
    assert seeds_needed("toy", experiment) == 20
    assert {run.key.seed for run in runs_of("stage-3", experiment)} == {*range(100, 110)}
    finish(experiment, "stage-2", by_method(0.1, dict.fromkeys(CONTENDERS, 0.0)))
    seeds = {}
    for run in runs_of("stage-3", experiment):
        seeds.setdefault(run.key.method.removeprefix(f"{ANCHOR_AWARE}, "), []).append(run.key.seed)
    answering = {name for name, own in seeds.items() if own == [*range(100, 120)]}
    assert answering <= {*ANSWERING}
    assert len(answering) >= 2
    assert all(own == [*range(100, 110)] for name, own in seeds.items() if name not in answering)
    assert {*ANSWERING} & {*seeds} == answering


def test_rivals_have_their_own_rounds(experiment):
    for one in HALVING:
        finish(experiment, f"rivals-{one.ending}", lambda method, options, seed: (options["network.dropout"], None))
    finals = runs_of("rivals-2", experiment)
    assert {run.key.method for run in finals} == set(RIVALS)
    assert len(finals) == 10 * len(RIVALS)
    assert 0.0 not in {json.loads(run.key.options)["network.dropout"] for run in finals}


def test_stages_are_named_in_full_or_by_how_they_begin():
    assert chosen_stages(None) == list(STAGES)
    assert chosen_stages("full,stage-1") == ["stage-1a", "stage-1b", "stage-1c", "full"]
    with pytest.raises(InputError, match="no stage 'stage-9'; there are: stage-1a"):
        chosen_stages("stage-9")


ROW = Row(data_set="toy", method="triplet", options='{"a": 1}', seed=3, steps=7, epoch=None, seconds=1.25, test_map=0.5)


def test_a_ledger_reads_what_it_wrote_in_one_order_whatever_came_first(tmp_path):
    rows = [replace(ROW, seed=seed, method=method) for seed in (2, 0, 1) for method in ("b", 'a, "c"')]
    values = {row.key: np.array([0.1234, 1.0, row.seed / 10]) for row in rows}
    ledger, other = Ledger((tmp_path / "one",)), Ledger((tmp_path / "two",))
    ledger.add("stage-2", rows, values)
    for row in reversed(rows):
        other.add("stage-2", [row], {row.key: values[row.key]})
    for name in ("stage-2.csv", "stage-2-queries.csv"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    assert sorted(ledger.rows("stage-2"), key=lambda row: row.key) == sorted(rows, key=lambda row: row.key)
    assert {key: one.tolist() for key, one in ledger.precisions("stage-2").items()} == {
        key: one.tolist() for key, one in values.items()
    }


def test_folders_are_read_as_one_and_absorbed_into_the_first(tmp_path):
    first, second = tmp_path / "a", tmp_path / "b"
    Ledger((first,)).add("full", [ROW], {ROW.key: np.array([0.5])})
    other = replace(ROW, seed=4)
    Ledger((second,)).add("full", [other], {other.key: np.array([0.25])})
    both = Ledger((first, second))
    assert both.rows("full") == [ROW, other]
    both.absorb(["full", "stage-2"])
    assert Ledger((first,)).rows("full") == [ROW, other]
    assert len(Ledger((first,)).precisions("full")) == 2
    assert Ledger((second,)).rows("full") == [other]
    assert not (first / "stage-2.csv").exists()


@pytest.mark.parametrize(("old", "new"), [("0.5", "half"), ("toy,", ""), (",3,", ",three,")])
def test_a_damaged_line_is_named(tmp_path, old, new):
    ledger = Ledger((tmp_path,))
    ledger.add("full", [ROW], {})
    path = tmp_path / "full.csv"
    header, line = path.read_text().splitlines()
    path.write_text(f"{header}\n{line.replace(old, new)}\n")
    with pytest.raises(InputError, match=r"full\.csv, line 2: damaged"):
        ledger.rows("full")


def test_other_data_under_a_known_name_are_refused(tmp_path):
    facts = {"toy": SetFacts("toy", 10, 5, 5, 3, "ab")}
    keep_facts(tmp_path, facts)
    keep_facts(tmp_path, {"other": replace(facts["toy"], name="other")})
    assert list(read_facts(tmp_path)) == ["toy", "other"]
    with pytest.raises(InputError, match="toy is other data"):
        keep_facts(tmp_path, {"toy": replace(facts["toy"], sha256="cd")})


def test_the_rounds_are_those_of_the_plan():
    assert [(one.kept, one.steps, one.seed) for one in HALVING] == [(27, 140, 0), (9, 420, 1), (3, 840, 2)]
    assert finals.LOOKS == (10, 20, 30, 40)
    assert (STEPS, PATIENCE, finals.CONTROL_SEEDS, finals.FULL_SEEDS) == (3600, 600, 10, 3)
