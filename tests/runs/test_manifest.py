"""The manifest decides which files are the run, and checks them."""

import json
import os
import shutil
from dataclasses import replace

import pytest

import aadml
from aadml.feature_extraction.ground.checksummed_json import FileSum, seal
from aadml.feature_extraction.ground.errors import InputError
from aadml.runs.manifest import (
    FORMAT,
    LOG,
    MANIFEST,
    VERSION,
    is_finished,
    newest_run,
    read_manifest,
)
from aadml.runs.store import new_run, open_run


def test_an_evaluation_that_the_manifest_does_not_name_finishes_no_run(random_run):
    manifest = read_manifest(random_run)
    files = {name: one for name, one in manifest.files.items() if name != "evaluation.json"}
    (random_run / MANIFEST).write_bytes(replace(manifest, files=files).to_bytes())
    assert not is_finished(random_run)
    assert aadml.load(random_run).evaluation is None


def test_a_run_is_read_and_verified_in_a_folder_whose_name_is_not_unicode(random_run, tmp_path):
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    shutil.copytree(random_run, folder)
    assert aadml.load(folder).evaluation == aadml.load(random_run).evaluation is not None
    assert aadml.verify(folder) == []


def test_a_manifest_states_its_version_and_a_new_run_has_taken_no_time(random_run, tmp_path):
    content = json.loads((random_run / MANIFEST).read_text())
    assert (content["format"], content["version"]) == ("aadml-run", 2)
    with new_run(tmp_path / "new") as store:
        assert (store.manifest.seconds, store.manifest.generation) == (0, 1)


def test_the_newest_finished_run_of_a_folder_is_used(random_run, tmp_path, caplog):
    runs = tmp_path / "runs"
    runs.mkdir()
    assert newest_run(runs) == runs
    with new_run(runs / "unfinished"):
        pass
    for name, age in (("a", 300), ("b", 100), ("c", 200)):
        shutil.copytree(random_run, runs / name)
        os.utime(runs / name / "evaluation.json", (1e9 - age, 1e9 - age))
        if name == "a":
            assert newest_run(runs) == runs / "a"
            assert caplog.messages == []
    assert newest_run(runs) == runs / "b"
    assert caplog.messages == [f"{runs} contains 3 finished runs; the newest is used: {runs / 'b'}"]


def test_a_lost_evaluation_is_scored_again(random_run):
    before = (random_run / "evaluation.json").read_bytes()
    (random_run / "evaluation.json").unlink()
    assert not is_finished(random_run)
    assert aadml.load(random_run).evaluation is None
    aadml.resume(random_run, on_note=pytest.fail)
    assert (random_run / "evaluation.json").read_bytes() == before
    notes = []
    aadml.resume(random_run, on_note=notes.append)
    assert notes == [f"{random_run} is finished, so the run is returned without further training"]
    assert aadml.verify(random_run) == []


def test_a_file_that_was_changed_is_not_read(random_run):
    (random_run / "config.yaml").write_text("method: random\n")
    with pytest.raises(InputError, match=r"config\.yaml"):
        read_manifest(random_run).read("config.yaml")
    manifest = replace(read_manifest(random_run), log=FileSum.of(b"a line\n"))
    (random_run / MANIFEST).write_bytes(manifest.to_bytes())
    (random_run / LOG).unlink(missing_ok=True)
    assert len(aadml.verify(random_run)) == 2
    assert any(f"{random_run / LOG} cannot be read" in one for one in aadml.verify(random_run))


@pytest.mark.parametrize("name", ["../precious", "/etc/precious", "a/../../precious", "a\0b"])
def test_a_manifest_that_names_a_file_outside_its_folder_is_refused(tmp_path, name):
    (tmp_path / "precious").write_bytes(b"p")
    with new_run(tmp_path / "run"):
        pass
    content = {"format": FORMAT, "version": VERSION, "run": "r", "generation": 1, "seconds": 0.0}
    sums = {"log": vars(FileSum.of(b"")), "files": {name: vars(FileSum.of(b"p"))}}
    (tmp_path / "run" / MANIFEST).write_bytes(seal(content | sums))
    with pytest.raises(InputError, match="is not a file inside the run folder"), open_run(tmp_path / "run"):
        pass
    assert (tmp_path / "precious").read_bytes() == b"p"


def test_the_newest_unfinished_run_of_a_folder_of_runs_is_named(random_run, tmp_path):
    runs = tmp_path / "runs"
    shutil.copytree(random_run, runs / "finished")
    with pytest.raises(InputError, match=rf"is a folder of runs, not a run; pass one of its runs, such as {runs}/fin"):
        read_manifest(runs)
    for name, age in (("a", 100), ("b", 200)):
        with new_run(runs / name) as store:
            store.commit({"config.yaml": b""})
        os.utime(runs / name / MANIFEST, (1e9 - age, 1e9 - age))
    advice = f"{runs} is a folder of runs, not a run; continue the training with `aadml train --resume {runs / 'a'}`"
    shutil.rmtree(runs / "finished")
    for call in (aadml.evaluate, aadml.audit, aadml.report, aadml.resume):
        with pytest.raises(InputError) as error:
            call(runs)
        assert str(error.value) == advice
