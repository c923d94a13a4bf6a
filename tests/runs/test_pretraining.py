"""3CMLF's ancillary model: a run of its own, trained once, the same bytes wherever it is kept, never another's."""

import re
import shutil
from pathlib import Path

import pytest
import torch

import aadml
from aadml.configuration.from_arguments import assemble
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.options import made
from aadml.methods.audio_text.curriculum import ancillary
from aadml.methods.audio_text.options import CurriculumOptions
from aadml.methods.training.session import Callbacks
from aadml.papers.audio_text import runs_of, table_of
from aadml.runs.loading import read_evaluation
from aadml.runs.prepare import prepare
from aadml.runs.pretraining import prior_config, prior_folder
from aadml.runs.train import train_into
from aadml.studies.execution import with_needed, work_off_needed
from aadml.studies.forecast import forecast, measure
from aadml.studies.job import is_done
from aadml.studies.sweep import sweep

pytest.importorskip("transformers")

SMALL = {
    "method.audio_width": 2, "method.text_layers": 1, "method.text_dimension": 16, "method.hidden": 16,
    "method.dimension": 16, "method.shares": [1, 1, 1], "method.ancillary_epochs": 3, "training.batch": 12,
    "training.epochs": 3, "device": "cpu",
}  # fmt: skip


def config(manifest, **changes):
    return assemble(config="3cmlf", data=str(manifest), settings=SMALL | changes)


def prior_of(of):
    return ancillary(made(CurriculumOptions, of.options), of.training)


def weights(folder):
    return (folder / "model.safetensors").read_bytes()


@pytest.fixture(scope="module")
def alone(manifest, tmp_path_factory):
    """A run that trained its ancillary model itself."""
    folder = tmp_path_factory.mktemp("alone") / "run"
    train_into(config(manifest), folder)
    return folder


def kept_in(place):
    return sorted(place.glob("ancillary-*"))


@pytest.mark.slow
def test_a_run_alone_keeps_the_model_in_its_own_folder_as_a_finished_run(manifest, alone):
    (kept,) = kept_in(alone)
    assert aadml.load(kept).facts.method.name == "audio-text"
    assert read_evaluation(kept).epochs == read_evaluation(alone).epochs == 3
    assert aadml.verify(alone) == []


def test_a_model_kept_elsewhere_gives_the_same_bytes_and_is_not_touched(manifest, alone, tmp_path):
    shutil.copytree(kept_in(alone)[0], tmp_path / kept_in(alone)[0].name)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    train_into(config(manifest), tmp_path / "run", priors=tmp_path)
    assert weights(tmp_path / "run") == weights(alone)
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert not kept_in(tmp_path / "run")


def test_a_training_in_memory_gives_the_same_weights(manifest, alone):
    seen = []
    model = aadml.fit(manifest, config="3cmlf", settings=SMALL, on_epoch=seen.append)
    assert len(seen) == 3 + 3  # those of the ancillary model too
    state, kept = model.method.state(), aadml.load(alone).method.state()
    assert state.keys() == kept.keys()
    assert all(torch.equal(value, kept[key]) for key, value in state.items())


def test_what_determines_it_is_in_its_name(manifest, tmp_path):
    def name(**changes):
        of = config(manifest, **changes)
        return prior_folder(tmp_path, prior_config(of, prior_of(of)), prior_of(of)).name

    own = name()
    assert re.fullmatch("ancillary-[0-9a-f]{12}_seed0", own)
    assert own == name(**{"method.until": "easy"})
    assert own == name(**{"training.epochs": 9})
    assert own == name(**{"training.batch": 6, "method.ancillary_batch": 12})
    others = [{"training.batch": 6}, {"method.ancillary_epochs": 2}, {"seed": 1}, {"method.hidden": 8},
              {"training.learning_rate": 0.1}, {"loss.temperature": 0.1}, {"method.captions": 1}]  # fmt: skip
    assert len({own, *(name(**change) for change in others)}) == 1 + len(others)


def test_the_content_of_a_weight_file_is_in_its_name(manifest, tmp_path):
    file = tmp_path / "weights.pth"
    names = set()
    for content in (b"some", b"other"):
        file.write_bytes(content)
        of = config(manifest, **{"method.audio_weights": str(file)})
        names.add(prior_folder(tmp_path, prior_config(of, prior_of(of)), prior_of(of)).name)
    assert len(names) == 2


def test_the_weights_that_training_begins_with_are_in_its_name(manifest, tmp_path):
    names = set()
    for content in (b"some", b"other"):
        (tmp_path / "model.safetensors").write_bytes(content)
        of = config(manifest, **{"method.start": str(tmp_path)})
        names.add(prior_folder(tmp_path, of, prior_of(of)).name)
    assert len(names) == 2


def test_the_folder_that_a_command_is_called_in_is_not_in_its_name(manifest, tmp_path, monkeypatch):
    names = set()
    for content in (b"some", b"other"):
        (tmp_path / content.decode()).mkdir()
        monkeypatch.chdir(tmp_path / content.decode())
        Path("model.safetensors").write_bytes(content)
        of = config(manifest, **{"method.start": ""})
        names.add(prior_folder(tmp_path, of, prior_of(of)).name)
    assert len(names) == 1


def test_of_the_run_that_training_begins_with_the_card_tells_the_name_alone(manifest, tmp_path):
    prepared = prepare(config(manifest, **{"method.start": str(tmp_path / "begun-with")}))
    assert prepared.model.facts.method.arguments.start == "begun-with"
    assert str(tmp_path) not in prepared.model.card()


def test_one_of_other_data_is_refused(manifest, alone, tmp_path):
    again = tmp_path / "tones"
    shutil.copytree(manifest.parent, again)
    (kept,) = kept_in(alone)
    changed = config(manifest)
    train_into(changed, tmp_path / "first", priors=kept.parent)
    text = manifest.read_text()
    try:
        manifest.write_text(text.replace("Tone number 3.", "Tone number three."))
        with pytest.raises(InputError, match="the data have changed"):
            train_into(changed, tmp_path / "second", priors=kept.parent)
    finally:
        manifest.write_text(text)
    assert not (tmp_path / "second").exists()


def test_a_damaged_one_is_refused(manifest, alone, tmp_path):
    place = tmp_path / kept_in(alone)[0].name
    shutil.copytree(kept_in(alone)[0], place)
    data = bytearray(weights(place))
    data[-1] ^= 1
    (place / "model.safetensors").write_bytes(bytes(data))
    with pytest.raises(InputError, match="damaged"):
        train_into(config(manifest), tmp_path / "run", priors=tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("epochs", [2, 5])
def test_a_kill_in_either_training_is_continued_to_the_same_bytes(manifest, alone, tmp_path, epochs):
    seen = []

    def stop(record):
        seen.append(record)
        if len(seen) == epochs:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_into(config(manifest), tmp_path / "run", callbacks=Callbacks(on_epoch=stop))
    later = []
    train_into(config(manifest), tmp_path / "run", callbacks=Callbacks(on_epoch=later.append))
    assert len(later) == 6 - epochs + 1
    assert weights(tmp_path / "run") == weights(alone)


@pytest.fixture(scope="module")
def compared(large_manifest, tmp_path_factory):
    """The table of 3CMLF, one seed."""
    place = tmp_path_factory.mktemp("compared")
    base = config(large_manifest, **{"method.dedupe": False})  # two captions a clip do not fit one batch of 64
    runs = runs_of("3cmlf", base, [0], place, dataset="AudioCaps")
    return place, runs, work_off_needed([job for run in runs for job in run.jobs], 0, sweep)


@pytest.mark.slow
def test_the_table_trains_the_plain_model_once_and_the_stages_in_one_run(compared):
    place, runs, outcomes = compared
    by_row = {run.row.cells[1]: run.jobs[0] for run in runs}
    assert by_row["stage 1"] == by_row["stage 2"] == by_row["stage 3"]
    mined = [job for name, job in by_row.items() if name not in ("plain", "without mining")]
    assert {job.needs.folder for job in mined} == {by_row["plain"].folder}
    assert len(outcomes) == 5
    assert not any(outcome.reason for outcome in outcomes)
    assert sum(read_evaluation(outcome.job.folder).epochs for outcome in outcomes) == 15
    assert len(kept_in(place / "3cmlf")) == 1
    assert not list(place.glob("*/*/ancillary-*"))


@pytest.mark.slow
def test_the_row_of_a_stage_is_the_run_that_ends_there(compared, large_manifest, tmp_path):
    place, runs, _ = compared
    table = table_of("3cmlf", runs, dataset="AudioCaps")
    rows = {row[1]: dict(zip(table.columns, row, strict=True)) for row in table.rows}
    for number, stage in ((1, "easy"), (2, "median"), (3, "hard")):
        folder = tmp_path / stage
        options = {"method.until": stage, "method.ancillary_batch": 12, "method.dedupe": False}
        # as the table's loss is (the released code's)
        train_into(config(large_manifest, **options, **{"loss.mask_same_id": False}), folder, priors=place / "3cmlf")
        record, row = read_evaluation(folder), rows[f"stage {number}"]
        for column, direction in (("T2A R@1", "text-audio"), ("A2T R@5", "audio-text")):
            assert row[column].mean == 100 * record.figure(f"hit-rate@{column[-1]}", direction)
        assert (row["epochs"], row["steps"]) == (record.epochs, record.steps) == (number, (5, 11, 16)[number - 1])
    assert len(kept_in(place / "3cmlf")) == 1
    assert weights(folder) == weights(runs[[run.row.cells[1] for run in runs].index("stage 3")].jobs[0].folder)
    assert (rows["plain"]["epochs"], rows["plain"]["steps"]) == (3, 18)
    assert "3 epochs and 18 steps" in table.notes[-1]


def test_the_table_goes_on_where_it_was_stopped(compared):
    _, runs, outcomes = compared
    again = work_off_needed([job for run in runs for job in run.jobs], 0, sweep)
    assert all(outcome.was_finished for outcome in again)
    assert len(again) == len(outcomes)
    assert all(is_done(job) for run in runs for job in run.jobs)


def test_what_needs_a_failed_model_is_not_tried(manifest, tmp_path):
    runs = runs_of("3cmlf", config(manifest), [0], tmp_path, dataset="AudioCaps")
    (first,) = {job.needs.folder for run in runs for job in run.jobs if job.needs}
    first.mkdir(parents=True)
    (first / "config.yaml").write_text("somebody else's")
    tried = []

    def work(jobs, workers):
        tried.extend(job.folder for job in jobs)
        return sweep([job for job in jobs if job.folder == first], workers)

    outcomes = work_off_needed([job for run in runs for job in run.jobs], 0, work)
    failed = [outcome for outcome in outcomes if outcome.reason]
    mined = {job.folder for run in runs for job in run.jobs if job.needs}
    assert {outcome.job.folder for outcome in failed} == mined | {first}
    assert f"the needed run {first.name} failed" in failed[-1].reason
    assert len(tried) == 2, "the model, and the row without mining"


@pytest.mark.parametrize(("base", "before", "after"), [("3cmlf_audiocaps", 530, 250), ("3cmlf", 212, 100)])
def test_the_table_trains_less_than_half_the_epochs_of_a_training_a_row(base, before, after, tmp_path):
    runs = runs_of("3cmlf", assemble(config=base, data="/data/clips.csv"), [0], tmp_path, dataset="AudioCaps")
    jobs = {job.folder: job for run in runs for job in [*run.jobs, *(job.needs for job in run.jobs if job.needs)]}
    assert sum(job.config["training"]["epochs"] for job in jobs.values()) == after
    rows = 0
    for run in runs:
        of = run.jobs[0].config
        whole, shares = of["training"]["epochs"], of["method"].get("shares")
        until = {"easy": shares[0], "median": sum(shares[:2])}.get(run.row.stage) if shares else None
        rows += whole if until is None else round(whole * until / sum(shares))
        rows += of["method"].get("ancillary_epochs", 0) * of["method"].get("mining", False)
    assert rows == before
    assert after * 2 < before


def test_a_forecast_measures_a_model_with_stages_by_the_plain_one(manifest, tmp_path, monkeypatch):
    seen = []

    def counted(config, splits):
        seen.append(config.method)
        return measure(config, splits)

    monkeypatch.setattr("aadml.studies.forecast.measure", counted)
    runs = runs_of("3cmlf", config(manifest), [0], tmp_path, dataset="AudioCaps")
    jobs = with_needed([job for run in runs if run.row.cells[1] in ("plain", "stage 3") for job in run.jobs])
    told = forecast(jobs, 1)
    assert seen == ["audio-text"]
    assert len(told.seconds) == len(jobs) >= 2
