"""What a training left is opened again: on which data, and what is said where something is missing or of others."""

import re
import shutil
from dataclasses import replace

import numpy as np
import pytest

import aadml
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.feature_extraction.ground.checksummed_json import read_sealed
from aadml.feature_extraction.ground.errors import InputError
from aadml.runs import manifest
from aadml.runs.loading import load_run, read_evaluation
from aadml.runs.manifest import LOG, MANIFEST, is_finished, is_run
from aadml.runs.store import new_run
from tests.runs.conftest import CONTENT


def test_a_run_is_opened_with_its_data_as_they_were(random_model, random_run):
    opened = load_run(random_run)
    assert opened.config.data == str(random_model.folder.parents[1] / "own.h5")
    assert [len(opened.splits[name]) for name in ("train", "valid", "test")] == [30, 9, 12]
    assert opened.model.evaluation == random_model.evaluation == read_evaluation(random_run).to_json()
    (random_run / LOG).write_text("{}")
    assert (
        aadml.load(random_run).evaluation == random_model.evaluation
    )  # the log of a closed form is empty, whatever is appended


def test_a_run_is_opened_with_one_reading_of_its_manifest(random_run, monkeypatch):
    read = []
    monkeypatch.setattr(manifest, "read_sealed", lambda path, *form: read.append(path.name) or read_sealed(path, *form))
    assert load_run(random_run).folder == random_run
    assert read == [MANIFEST]


def test_a_run_whose_data_changed_or_went_is_told(tmp_path):
    write_features(tmp_path / "own.h5", CONTENT)
    folder = aadml.fit(tmp_path / "own.h5", method="random", runs=tmp_path / "runs").folder
    write_features(tmp_path / "own.h5", replace(CONTENT, labels=np.roll(CONTENT.labels, 1)))
    with pytest.raises(
        InputError,
        match=f"the data have changed since {folder} was begun, or another version .*; restore them, or pass",
    ):
        load_run(folder)
    (tmp_path / "own.h5").unlink()
    with pytest.raises(InputError, match=f"restore the data of {folder}, or pass --data"):
        load_run(folder)
    assert aadml.load(folder).facts.label == "random"


def test_a_run_whose_judgments_changed_names_their_file_and_is_scored_under_another_rule(tmp_path):
    data, judged, notes = tmp_path / "own.h5", tmp_path / "judged.csv", []
    write_features(data, CONTENT)
    ids = aadml.read(data).test.ids
    judged.write_text("query,item,grade\n" + "".join(f"{name},{name},1\n" for name in ids))
    settings = [f"relevance={judged}"]
    folder = aadml.fit(data, method="random", settings=settings, runs=tmp_path / "runs").folder
    judged.write_text(judged.read_text() + f"{ids[0]},{ids[1]},1\n")
    wanted = rf"^{judged}: the judgments have changed since {folder} was begun; restore them, or pass --data F"
    for use in (aadml.evaluate, aadml.report, aadml.audit):
        with pytest.raises(InputError, match=wanted):
            use(folder)
    for _ in range(2):
        assert aadml.evaluate(folder, relevance="own", on_note=notes.append).relevance == "own"
        judged.unlink(missing_ok=True)
    assert not [note for note in notes if "judg" in note]
    with pytest.raises(InputError, match="neither a file of judgments nor a rule"):
        aadml.evaluate(folder)


def test_what_is_no_run_says_what_it_is(random_model, tmp_path):
    saved = random_model.save(tmp_path / "model")
    (tmp_path / "empty").mkdir()
    for place, said in (
        (saved, "is a model without its run; pass --data"),
        (tmp_path / "nowhere", "does not exist; create a run with `aadml train`"),
        (saved / "model.json", "is a file, not a folder"),
        (tmp_path / "empty", f"not a run folder .the file {MANIFEST} is missing."),
    ):
        with pytest.raises(InputError, match=said):
            load_run(place)
        assert not is_run(place)
        assert not is_finished(place)


def test_a_run_that_was_stopped_holds_no_model_and_no_evaluation(tmp_path):
    with new_run(tmp_path / "run") as store:
        store.commit({"config.yaml": b"c"})
    assert not is_finished(tmp_path / "run")
    shutil.copytree(tmp_path / "run", tmp_path / "my run")
    for folder, written in (("run", f"{tmp_path}/run"), ("my run", f"'{tmp_path}/my run'")):
        wanted = f"training was not finished; continue the training with `aadml train --resume {written}`"
        with pytest.raises(InputError, match=re.escape(wanted)):
            aadml.load(tmp_path / folder)
    with pytest.raises(InputError, match=r"evaluation\.json does not exist, because training was not finished"):
        read_evaluation(tmp_path / "run")
    with pytest.raises(InputError, match=r"config\.yaml"):
        aadml.resume(tmp_path / "run")
