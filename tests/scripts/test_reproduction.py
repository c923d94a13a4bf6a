"""The full-length reproduction: runs in order, made again only if their bytes change, and the page from its CSV."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from aadml.papers.rows import paper_runs
from aadml.reports.published import PAPER
from aadml.studies.comparison_rows import RowSettings
from scripts import reproduction

FIGURE_5 = {"triplet", "complete-triplet", "hard-triplet", "aa-triplet", "aa-complete-triplet", "aa-hard-triplet"}


@pytest.fixture(scope="module")
def jobs():
    shared = RowSettings("synthetic:ave", config="aadml_ave", with_controls=False)
    runs = paper_runs("ave", shared, shorten=lambda config: config, draws={})
    return reproduction.jobs_of(runs, Path("runs"))


def row(job, value="0.5", **changes):
    plain = dict.fromkeys(reproduction.RUN, "0") | {"run": reproduction.name_of(job), "mean": value}
    origin = {"kernels": reproduction.kernels(job), "processor": reproduction.processor()}
    return plain | {"seed": str(job.config.common.seed)} | origin | changes


def test_a_run_is_made_again_only_if_its_bytes_change(jobs):
    names = [(reproduction.name_of(job), job.config.common.seed) for job in jobs]
    assert len(set(names)) == len(names)
    assert {seed for name, seed in names if name == "triplet"} == {0, 1, 2}
    assert {seed for name, seed in names if name == "aa-triplet"} == {0, 1, 2}
    assert {seed for name, seed in names if name == "aa-triplet-k7"} == {0}
    jobs = jobs[:10]
    rows = [row(job) for job in jobs]
    assert reproduction.missing(jobs, rows) == []
    changed_code = [*rows[1:], row(jobs[0], kernels="other", weights="a")]
    assert reproduction.missing(jobs, changed_code, lambda job: "b") == jobs[:1]
    assert reproduction.missing(jobs, changed_code, lambda job: "a") == []
    assert changed_code[-1]["kernels"] == reproduction.kernels(jobs[0])
    changed = replace(jobs[0], config=jobs[0].config.on("other.h5"))
    assert reproduction.kernels(changed) != reproduction.kernels(jobs[0])


def test_the_hashes_of_rows_with_equal_weights_are_stored_even_if_nothing_is_trained(jobs, tmp_path, monkeypatch):
    rows = [row(job, kernels="other", weights="a") for job in jobs[:2]]
    reproduction.write(tmp_path / "runs.csv", reproduction.RUN, rows)
    reproduction.write(tmp_path / "forecast.csv", ("run", "seconds"), [{"run": jobs[0].folder.name, "seconds": "1"}])
    monkeypatch.setattr(reproduction, "RESULTS", tmp_path)
    monkeypatch.setattr(reproduction, "jobs_of", lambda *_: jobs[:2])
    monkeypatch.setattr(reproduction, "missing", partial(reproduction.missing, weights=lambda job: "a"))
    monkeypatch.setattr("sys.argv", ["reproduction.py"])
    reproduction.main()
    stored = reproduction.read(tmp_path / "runs.csv")
    assert [line["kernels"] for line in stored] == [reproduction.kernels(job) for job in jobs[:2]]


def test_rows_of_another_kind_of_processor_are_compared_by_hashes_of_this_processor(jobs):
    def rows():
        return [row(jobs[0], kernels="other", weights="there", processor="another kind"), row(jobs[1])]

    def made(job):
        return "here"

    with pytest.raises(SystemExit, match="another kind of processor; run --weights FILE in a checkout"):
        reproduction.missing(jobs[:2], rows(), made)
    known = rows()
    assert reproduction.missing(jobs[:2], known, made, {jobs[0].folder.name: "here"}) == []
    assert known[0]["weights"] == "here"
    assert known[0]["processor"] == reproduction.processor()
    assert reproduction.missing(jobs[:2], rows(), made, {jobs[0].folder.name: "unlike"}) == jobs[:1]
    same_code = [row(jobs[0], weights="there", processor="another kind"), row(jobs[1])]
    assert reproduction.missing(jobs[:2], same_code, made) == []


def test_only_runs_of_figure_5_score_clips_by_epoch(jobs):
    curves = [reproduction.name_of(job) for job in jobs if reproduction.has_curves(job)]
    assert sorted(curves) == sorted(FIGURE_5)
    for job in jobs:
        scored = reproduction.has_curves(job)
        assert (job.diagnosis, job.config.training.train_map) == ((1, 1) if scored else (0, 0))


def test_words_do_not_change_the_hash_of_code():
    source = '"""A module."""\n\nX = "text"\n\n\ndef f(x):\n    """Return x."""\n    return x\n'
    code = reproduction.code_of(source)
    assert reproduction.code_of(source.replace("Return x.", "Return `x`.").replace("A module", "Module")) == code
    assert reproduction.code_of(source.replace("    return x", "    # unchanged\n    return x")) == code
    assert reproduction.code_of(source.replace("return x\n", "return -x\n")) != code
    assert reproduction.code_of(source.replace('"text"', '"other"')) != code


def test_training_stops_before_the_budget_is_exceeded(jobs):
    expected = {job.folder.name: 10.0 for job in jobs}
    assert reproduction.affordable(jobs, expected, 35.0) == jobs[:3]
    assert reproduction.affordable(jobs, expected, -1.0) == []


def test_the_page_is_built_from_the_tables(jobs):
    rows = [row(job, f"{0.1 + 0.01 * number:.6f}") for number, job in enumerate(jobs[:30])]
    curves = [
        {"run": "triplet", "split": "train", "figure": "loss", "epoch": str(epoch), "value": str(9 - epoch)}
        for epoch in (1, 2, 3)
    ]
    text = reproduction.page(rows, curves, len(jobs))
    assert f"30 of {len(jobs)} runs are finished" in text
    (line,) = (line for line in text.splitlines() if line.startswith("| triplet | 0."))
    published = PAPER.published["losses"]["triplet"]["AVE"].mean
    assert line.startswith("| triplet | 0.100 | 1 | 23 |")
    assert f"| {published:.3f} |" in line
    assert "The ranks differ most for " in text
    assert "| triplet | train | loss | 8 | 6 | 3 |" in text


def test_the_committed_page_is_that_of_the_committed_tables(jobs):
    folder = reproduction.RESULTS
    rows, curves = (reproduction.read(folder / name) for name in ("runs.csv", "curves.csv"))
    assert (folder / "README.md").read_text(encoding="utf-8") == reproduction.page(rows, curves, len(jobs))
    if rows:
        assert reproduction.read(folder / "forecast.csv"), "a forecast is committed before the runs"
