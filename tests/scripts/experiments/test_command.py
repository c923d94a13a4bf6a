"""The experiment from its command line: stages end to end, killed, continued, and divided."""

import csv
import hashlib
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.feature_extraction.ground.errors import InputError
from aadml.studies.execution import shard_of
from aadml.studies.forecast import Forecast
from aadml.studies.sweep import SweepOutcome, sweep
from scripts.experiments.anchor_aware import execution, finals, fold, page, shipped
from scripts.experiments.anchor_aware.__main__ import command
from scripts.experiments.anchor_aware.contenders import ANCHOR_AWARE, CONTENDERS, RIVALS
from scripts.experiments.anchor_aware.execution import ExperimentPlan, run_experiment
from scripts.experiments.anchor_aware.experiment import Result, Run
from scripts.experiments.anchor_aware.ledger import Ledger, Row
from scripts.experiments.anchor_aware.search import RIVALRY, SEARCHES
from scripts.experiments.anchor_aware.stages import STAGES

SMALL = ["network.hidden=[4]", "training.batch=40", "device=cpu"]
FLAGS = [part for setting in SMALL for part in ("--set", setting)]
CHANGING = {"seconds", "commit"}


@pytest.fixture
def toy(tmp_path):
    path = tmp_path / "toy.h5"
    write_features(path, synthetic(classes=3, train=40, valid=0, test=15, dimensions=(5, 6), difficulty=0.2))
    return path


@pytest.fixture(autouse=True)
def few_runs(monkeypatch):
    """The stages with two points, two or three seeds, and one rival."""
    for prefix, search in SEARCHES.items():
        few = [replace(one, kept=kept) for one, kept in zip(search.rounds, (2, 2, 1), strict=False)]
        methods = dict([*RIVALS.items()][:1]) if prefix == RIVALRY else search.methods
        monkeypatch.setitem(SEARCHES, prefix, replace(search, methods=methods, rounds=tuple(few)))
    monkeypatch.setattr(finals, "LOOKS", (2, 3))
    monkeypatch.setattr(shipped, "published_methods", lambda: ["cca", "dscmr"])


@pytest.fixture
def untrained(monkeypatch, toy):
    """Rows made up from the names of their runs; nothing is trained, measured or drawn."""

    def result(run, outcome):
        key = run.key
        digest = hashlib.sha256(repr(key).encode()).digest()
        score = digest[0] / 256
        made = Row(data_set=key.data_set, method=key.method, options=key.options, seed=key.seed, steps=5,
                   valid_map=score)  # fmt: skip
        if run.split == "valid":
            return Result(made)
        return Result(replace(made, test_map=score), np.full(15, score), np.full(15, score))

    monkeypatch.setattr(Run, "result", result)
    monkeypatch.setattr(page, "drawings", lambda *given: {})
    monkeypatch.setattr(execution, "forecast", lambda jobs, *others: Forecast({"all": 60.0}, 0, 1))
    monkeypatch.setattr(execution, "drawn_place", lambda share: str(toy))
    return lambda jobs, workers: [SweepOutcome(job) for job in jobs]


def ledger(folder):
    """All rows but what differs from call to call."""
    found = {}
    for path in sorted(folder.glob("*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            found[path.name] = [{k: v for k, v in row.items() if k not in CHANGING} for row in csv.DictReader(file)]
    return found


def call(folder, *data, only=None, seeds=40, shard=None, merge=False, work=sweep, on_note=lambda message: None,
         frozen=None):  # fmt: skip
    plan = ExperimentPlan(
        seeds=range(seeds), folder=folder, work=work, confirm=lambda forecast: None, note=on_note, settings=SMALL,
        max_epochs=1, workers=0, shard=shard_of(shard, merge=merge), merge=merge, frozen=frozen,
    )  # fmt: skip
    return run_experiment([str(place) for place in data], only, plan)


def run(*arguments):
    """Run the command line of the experiment; returns (exit code, stdout, stderr)."""
    result = CliRunner().invoke(command, [str(argument) for argument in arguments])
    if isinstance(result.exception, InputError):
        return 2, result.stdout, str(result.exception)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.exit_code, result.stdout, result.stderr


@pytest.mark.slow
def test_a_killed_experiment_goes_on_to_the_same_ledger(toy, tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    only = "stage-1,stage-2"
    arguments = ["--data", toy, "--only", only, "--seeds", 2, "--max-epochs", 1, *FLAGS, "--workers", 0, "-o", whole]
    code, said, err = run(*arguments)
    assert code == 0, err
    assert said.splitlines()[-1] == str(whole / "results.md")
    assert "| H1 | Does AA raise the triplet loss where both are tuned alike? |" in said
    calls = []

    def dies(jobs, workers):
        calls.append(len(jobs))
        if len(calls) in (2, 5):
            sweep(jobs[:1], workers=0)  # finished, and killed before its row was written
            raise KeyboardInterrupt
        return sweep(jobs, workers=workers)

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            call(killed, toy, only=only, seeds=2, work=dies)
    call(killed, toy, only=only, seeds=2, work=dies)
    assert ledger(killed) == ledger(whole)
    assert {name: len(rows) for name, rows in ledger(whole).items() if "queries" not in name} == {
        "sets.csv": 1, "stage-1a.csv": 6, "stage-1b.csv": 6, "stage-1c.csv": 3, "stage-2.csv": 6,
        "stage-2-clips.csv": 6,
    }  # fmt: skip
    rows = ledger(whole)["stage-2.csv"]
    assert all(0 < float(row[name]) <= 1 for row in rows for name in ("valid_map", "train_map", "test_map", "chance"))
    assert {row["method"] for row in rows if row["bank"]} == {"aa-triplet"}
    assert not any(row["test_map"] for row in ledger(whole)["stage-1b.csv"])
    assert sum(calls) >= 21


def test_a_long_plan_is_refused_where_nobody_can_answer(untrained, toy, tmp_path, monkeypatch):
    long = Forecast({"all": 2 * 3600.0}, 0, 1)
    monkeypatch.setattr(execution, "forecast", lambda jobs, *others: long)
    arguments = ["--data", toy, "--only", "stage-1a", "--max-epochs", 1, *FLAGS, "--workers", 0,
                 "-o", tmp_path / "out"]  # fmt: skip
    code, _, err = run(*arguments)
    assert code == 2
    assert "would take about 2.0 h; give --yes to begin, --only for a part" in err
    assert not list(tmp_path.glob("out/*/runs"))
    monkeypatch.setattr("aadml.cli.sweeps.work", untrained)
    code, _, err = run(*arguments, "--yes")
    assert code == 0, err


@pytest.mark.slow
def test_a_run_that_has_a_row_is_not_run_again_and_every_stage_has_its_runs(untrained, toy, tmp_path):
    first = call(tmp_path / "out", toy, work=untrained)
    no_longer_than_the_cap, on_planned_sets = {"stage-5-capped"}, {"r5"}
    assert {name.removesuffix(".csv") for name in ledger(tmp_path / "out")} >= (
        set(STAGES) - no_longer_than_the_cap - on_planned_sets
    )
    assert len(first.outcomes) == len({str(one.job.folder) for one in first.outcomes})
    assert [table.columns[-1] for table in first.tables] == ["toy", "hours"]
    before = ledger(tmp_path / "out")
    again = call(tmp_path / "out", toy, work=untrained)
    assert again.outcomes == ()
    assert ledger(tmp_path / "out") == before


@pytest.mark.slow
def test_two_shards_merge_into_what_one_call_finds(untrained, toy, tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    only = "stage-1,stage-2,stage-3"
    call(one, toy, only=only, work=untrained)
    notes = []
    while True:
        done = [call(two, toy, only=only, work=untrained, shard=f"{i}/2", on_note=notes.append) for i in range(2)]
        if not any(result.outcomes for result in done):
            break
        assert all(result.page is None for result in done)
    assert any("not yet on toy: stage-1a is not finished there" in note for note in notes)
    merged = call(two, merge=True)  # the shards know the data
    assert merged.page == two / "results.md"
    assert ledger(two) == ledger(one)
    assert merged.page.read_text() == (one / "results.md").read_text()


def test_a_failed_run_is_written_down_and_the_others_go_on(toy, tmp_path, monkeypatch):
    def breaks(jobs, workers):
        return [SweepOutcome(job, "the loss became nan") for job in jobs]

    notes = []
    result = call(tmp_path / "out", toy, only="stage-1a", work=breaks, on_note=notes.append)
    assert "6 runs are known to be needed (stage-1a 6), at most about" in notes[1]
    rows = ledger(tmp_path / "out")["stage-1a.csv"]
    assert {row["failed"] for row in rows} == {"the loss became nan"}
    assert result.failed == len(rows) == 6
    assert "6 (6 failed)" in result.page.read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [([], "no data; give --data F.h5"),
     (["--data", "toy.h5", "--only", "stage-9"], "no stage 'stage-9'"),
     (["--data", "toy.h5", "--data", "other/toy.h5"], "two files are called toy"),
     (["--data", "absent.h5"], "absent.h5 does not exist"),
     (["--data", "toy.h5", "--frozen", "toy"], "--frozen toy: no options were chosen on a set of that name"),
     (["--data", "toy.h5", "--frozen", "corsmal", "--only", "stage-1"], "leave --only out")],
)  # fmt: skip
def test_what_is_wrong_is_said_in_one_line(toy, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "toy.h5").write_bytes(toy.read_bytes())
    code, _, err = run(*arguments, "-o", "out")
    assert code == 2
    assert message in err
    assert not (tmp_path / "out" / "runs").exists()


def test_a_folder_of_other_files_is_refused_and_left_alone(toy, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "results.md").write_text("mine")
    code, _, err = run("--data", toy, "-o", tmp_path / "out")
    assert code == 2
    assert "contains files that do not belong to a study (results.md)" in err
    assert (tmp_path / "out" / "results.md").read_text() == "mine"


def test_other_data_of_the_same_name_are_refused(untrained, toy, tmp_path):
    call(tmp_path / "out", toy, only="stage-1a", work=untrained)
    write_features(toy, synthetic(classes=3, train=41, valid=0, test=15, dimensions=(5, 6), difficulty=0.2))
    with pytest.raises(InputError, match="toy is other data"):
        call(tmp_path / "out", toy, only="stage-1a", work=untrained)


def test_controls_that_are_the_chosen_training_are_said_before_it_begins(untrained, toy, tmp_path, monkeypatch):
    only_r1 = {**CONTENDERS[ANCHOR_AWARE].space, "proxy.reading": ("R1",), "proxy.attention": ("mha",)}
    main = SEARCHES["stage-"]
    changed = replace(main.methods[ANCHOR_AWARE], space=only_r1)
    monkeypatch.setitem(SEARCHES, "stage-", replace(main, methods={**main.methods, ANCHOR_AWARE: changed}))
    call(tmp_path, toy, only="stage-1", work=untrained)
    notes = []
    call(tmp_path, toy, only="stage-3", seeds=1, work=untrained, on_note=notes.append)
    said = "affine map of the anchor is the same training as the chosen AA, not run: reading R1 makes attention"
    assert any(said in note for note in notes)
    assert "aa-triplet, affine map of the anchor" not in {row["method"] for row in ledger(tmp_path)["stage-3.csv"]}
    assert len(ledger(tmp_path)["stage-3.csv"]) == 6
    assert (
        "affine map of the anchor: the same training as the chosen AA, not run" in (tmp_path / "results.md").read_text()
    )


def test_frozen_options_of_another_set_are_trained_on_all_seeds_and_each_row_is_written_at_once(
    untrained, toy, tmp_path
):
    folder, sizes, written = tmp_path / "out", [], []

    def work(jobs, workers):
        sizes.append(len(jobs))
        written.append(len(ledger(folder).get("stage-2.csv", [])))
        return untrained(jobs, workers)

    call(folder, toy, seeds=4, frozen="corsmal", work=work)
    rows = Ledger((folder,)).rows("stage-2")
    assert sizes == [1] * 12
    assert written == list(range(12))
    assert {row.seed for row in rows} == {100, 101, 102, 103}
    shipped_rows = [row for row in Ledger((fold.HERE,)).rows("stage-2") if row.data_set == "corsmal"]
    assert {(row.method, row.options) for row in rows} == {(row.method, row.options) for row in shipped_rows}
    assert set(ledger(folder)) == {"sets.csv", "stage-2.csv", "stage-2-queries.csv", "stage-2-clips.csv"}
    assert "its options are those that" in (folder / "results.md").read_text()
    assert call(folder, toy, seeds=4, frozen="corsmal", work=work).outcomes == ()
    with pytest.raises(InputError, match="other options than the frozen ones of av_digits; use another folder"):
        call(folder, toy, seeds=4, frozen="av_digits", work=work)


def test_rows_of_another_test_set_are_refused_before_training(untrained, toy, tmp_path):
    folder = tmp_path / "out"
    call(folder, toy, seeds=2, frozen="corsmal", work=untrained)
    (folder / "sets.csv").unlink()
    folder.joinpath("results.md").unlink()
    write_features(toy, synthetic(classes=3, train=40, valid=0, test=16, dimensions=(5, 6), difficulty=0.2))
    for rest in [path for path in folder.iterdir() if path.suffix != ".csv"]:
        rest.unlink()
    (folder / "sets.csv").write_text("name,train,valid,test,classes,sha256\n")
    with pytest.raises(InputError, match="are of another test set, of 15 queries, and the data has 16 test clips"):
        call(folder, toy, seeds=3, frozen="corsmal", work=lambda jobs, workers: pytest.fail("trained"))
    assert "toy" not in (folder / "sets.csv").read_text()


def test_a_stage_without_the_one_before_says_so(untrained, toy, tmp_path):
    notes = []
    call(tmp_path / "out", toy, only="stage-2", work=untrained, on_note=notes.append)
    assert "stage-2: not yet on toy: stage-1c is not finished there; run --only stage-1c first" in notes
