"""Audit of the kept epoch: the log must show the epoch that the config selects."""

from types import SimpleNamespace

import pytest

import aadml
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.methods.training.settings import Training
from aadml.protocols.audit import Verdict
from aadml.runs import run_audit
from aadml.runs.loading import load_run

SMALL = {"network.hidden": [4], "training.batch": 20}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run that kept its best epoch and one that kept its last, of three."""
    trained, features = {}, tmp_path_factory.mktemp("features") / "f.h5"
    write_features(features, synthetic(classes=3, train=60, valid=15, test=15, dimensions=(6, 8)))
    for select in ("best", "last"):
        folder = tmp_path_factory.mktemp(select)
        settings = {**SMALL, "training.select": select}
        aadml.fit(features, loss="triplet", epochs=3, settings=settings, runs=folder)
        (run,) = folder.iterdir()
        trained[select] = load_run(run)
    return trained


def logged(monkeypatch, scores, stages=None):
    """Put other validation scores into the log, one an epoch."""
    stages = stages or ["train"] * len(scores)
    records = [
        {"epoch": epoch, "stage": stage, "valid map_mean": score}
        for epoch, (score, stage) in enumerate(zip(scores, stages, strict=True), 1)
    ]
    monkeypatch.setattr(run_audit, "read_records", lambda _: records)


def kept(monkeypatch, epoch):
    evaluation = type("Evaluation", (), {"selected_epoch": epoch})
    monkeypatch.setattr(run_audit, "read_evaluation", lambda _: evaluation)


@pytest.mark.parametrize(
    ("select", "epoch", "passes"),
    [("best", 2, True), ("best", 3, False), ("best", 1, False), ("last", 3, True), ("last", 2, False)],
)
def test_only_what_the_config_asks_for_may_be_kept(runs, monkeypatch, select, epoch, passes):
    logged(monkeypatch, [0.2, 0.4, 0.3])
    kept(monkeypatch, epoch)
    finding = run_audit._kept_epoch(runs[select])
    assert (finding.verdict is Verdict.PASS) == passes
    assert f"epoch {epoch} was kept; " in finding.evidence
    assert finding.evidence.endswith(" is 2" if select == "best" else " is 3")


@pytest.mark.parametrize(("epoch", "passes"), [(1, True), (4, True), (3, False), (2, False)])
def test_a_last_stage_may_begin_anew(runs, monkeypatch, epoch, passes):
    logged(monkeypatch, [0.9, 0.1, 0.2, 0.4], ["first", "first", "second", "second"])
    kept(monkeypatch, epoch)
    assert (run_audit._kept_epoch(runs["best"]).verdict is Verdict.PASS) == passes


def test_of_equal_scores_the_first_is_kept(runs, monkeypatch):
    logged(monkeypatch, [0.4, 0.4, 0.1])
    kept(monkeypatch, 2)
    assert run_audit._kept_epoch(runs["best"]).verdict is Verdict.FAIL


@pytest.mark.parametrize("select", ["best", "last"])
def test_runs_as_they_are_pass(runs, select):
    assert run_audit._kept_epoch(runs[select]).verdict is Verdict.PASS


def test_the_log_is_searched_for_the_criterion_of_the_config(monkeypatch, tmp_path):
    rows = [(0.1, 0.9), (0.2, 0.4), (0.3, 0.1)]
    records = [{"epoch": i, "valid map_mean": one, "valid recall@2": two} for i, (one, two) in enumerate(rows, 1)]
    monkeypatch.setattr(run_audit, "read_records", lambda _: [*records, {"epoch": 4, "loss": 1.0}])
    findings = {}
    for criterion in ("auto", "recall@2"):
        config = SimpleNamespace(training=Training(criterion=criterion))
        run = SimpleNamespace(manifest=tmp_path, config=config, model=SimpleNamespace(method=None))
        for epoch in (1, 3):
            kept(monkeypatch, epoch)
            findings[criterion, epoch] = run_audit._kept_epoch(run)
    assert [one.verdict for one in findings.values()] == [Verdict.FAIL, Verdict.PASS, Verdict.PASS, Verdict.FAIL]
    assert "the best validation MAP in the log is 3" in findings["auto", 1].evidence
    assert "the best validation recall@2 in the log is 1" in findings["recall@2", 3].evidence


@pytest.mark.parametrize(("epoch", "scores"), [(None, [0.2, 0.4]), (1, [])])
def test_where_no_epoch_was_chosen_nothing_is_claimed(runs, monkeypatch, epoch, scores):
    logged(monkeypatch, scores)
    kept(monkeypatch, epoch)
    assert run_audit._kept_epoch(runs["best"]).verdict is Verdict.NOT_CHECKABLE
