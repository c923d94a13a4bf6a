"""The audit of the kept epoch: what the config asked to be kept, by the log."""

import pytest

import aadml
from aadml.protocols.audit import Verdict
from aadml.runs import audit

SMALL = {"network.hidden": [4], "training.batch": 20}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run that kept its best epoch and one that kept its last, of three."""
    made = {}
    for select in ("best", "last"):
        folder = tmp_path_factory.mktemp(select)
        settings = {**SMALL, "training.select": select}
        aadml.fit("synthetic:ave", loss="triplet", epochs=3, settings=settings, runs=folder)
        (made[select],) = folder.iterdir()
    return made


def logged(monkeypatch, scores, stages=None):
    """Put other validation scores into the log, one an epoch."""
    stages = stages or ["train"] * len(scores)
    records = [
        {"epoch": epoch, "stage": stage, "valid map_mean": score}
        for epoch, (score, stage) in enumerate(zip(scores, stages, strict=True), 1)
    ]
    monkeypatch.setattr(audit, "read_records", lambda _: records)


def kept(monkeypatch, epoch):
    evaluation = type("Evaluation", (), {"selected_epoch": epoch})
    monkeypatch.setattr(audit, "read_evaluation", lambda _: evaluation)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("select", "epoch", "passes"),
    [("best", 2, True), ("best", 3, False), ("best", 1, False), ("last", 3, True), ("last", 2, False)],
)
def test_only_what_the_config_asks_for_may_be_kept(runs, monkeypatch, select, epoch, passes):
    logged(monkeypatch, [0.2, 0.4, 0.3])
    kept(monkeypatch, epoch)
    finding = audit._kept_epoch(runs[select])
    assert (finding.verdict is Verdict.PASS) == passes
    assert f"epoch {epoch} was kept; " in finding.evidence
    assert finding.evidence.endswith("epoch 2" if select == "best" else "epoch 3")


@pytest.mark.parametrize(("epoch", "passes"), [(1, True), (4, True), (3, False), (2, False)])
def test_a_last_stage_may_begin_anew(runs, monkeypatch, epoch, passes):
    logged(monkeypatch, [0.9, 0.1, 0.2, 0.4], ["first", "first", "second", "second"])
    kept(monkeypatch, epoch)
    assert (audit._kept_epoch(runs["best"]).verdict is Verdict.PASS) == passes


def test_of_equal_scores_the_first_is_kept(runs, monkeypatch):
    logged(monkeypatch, [0.4, 0.4, 0.1])
    kept(monkeypatch, 2)
    assert audit._kept_epoch(runs["best"]).verdict is Verdict.FAIL


@pytest.mark.parametrize("select", ["best", "last"])
def test_runs_as_they_are_pass(runs, select):
    assert audit._kept_epoch(runs[select]).verdict is Verdict.PASS
