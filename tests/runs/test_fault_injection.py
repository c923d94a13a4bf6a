"""Trainings that are killed, refused by the system, interrupted or begun twice end in the bytes of one that was not.

A seeded sample; `scripts/soak/kill_points` does all points of all methods.
"""

import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from faults import CALLS, KILLED, REFUSED, failing, in_child, killing, points, watched
from kill_points import FOREIGN, kill_points
from trainings import NAMES, config, contents, differences, write_data

from aadml.feature_extraction.ground.errors import InputError
from aadml.methods.training.session import Callbacks
from aadml.runs.evaluate import evaluate
from aadml.runs.fit import fit, resume_run
from aadml.runs.manifest import MANIFEST, is_run, read_manifest
from aadml.runs.store import open_run
from aadml.runs.train import train_into
from aadml.runs.verify import verify_folder as verify
from aadml.studies.job import FAILURE, Job, work_off

OWN = ("README.md", "config.yaml", "environment.json", "evaluation.json", "manifest.json", "metrics.jsonl",
       "model.json", "model.safetensors")  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_data(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def complete(data):
    return config("aadml", data)


@pytest.fixture(scope="module")
def whole(complete, tmp_path_factory):
    """The folder of a training that nothing happened to."""
    folder = tmp_path_factory.mktemp("whole")
    train_into(complete, folder)
    assert sorted(path.name for path in folder.iterdir()) == sorted(OWN)
    return folder


@pytest.fixture
def interrupted(complete, tmp_path):
    """A run that was killed after its first epoch."""
    folder = tmp_path / "interrupted"
    assert in_child(lambda: train_into(complete, folder, callbacks=Callbacks(on_epoch=after(2)))).code == KILLED
    assert read_manifest(folder).numbered("state")
    return folder


def after(epochs):
    def reach(record):
        if record["epoch"] == epochs:
            os._exit(KILLED)

    return reach


def same(folder, whole, beside=()):
    found = [name for name in differences(contents(whole), contents(folder)) if name not in beside]
    assert not found
    assert not verify(folder)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_killed_training_of_every_method_ends_in_the_same_bytes(name, tmp_path):
    tally = kill_points(name, tmp_path, every=30, twice=1, seed=3)
    assert tally.kills >= 3
    assert not tally.failures


def test_nothing_changes_a_run_folder_by_a_call_that_is_not_watched(complete, tmp_path):
    """Python reports every such call but `write` and `fsync` to audit hooks, whoever makes it."""
    folder, reported, seen = tmp_path / "run", [], []
    words = {"open": "open", "os.mkdir": "mkdir", "os.rename": "rename", "os.remove": "unlink", "os.rmdir": "rmdir",
             "os.truncate": "truncate", "os.chmod": "fchmod", "os.chown": "fchown", "os.link": "link",
             "os.symlink": "symlink"}  # fmt: skip

    def hook(event, arguments):
        place = arguments[0] if arguments else None
        if event in ("os.chmod", "os.chown") and isinstance(place, int):
            place = Path(f"/proc/self/fd/{place}").readlink()
        if event in words and isinstance(place, str | os.PathLike) and str(place).startswith(str(folder)):
            flags = arguments[2] if event == "open" else os.O_WRONLY
            if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
                reported.append(words[event])

    def work():
        sys.addaudithook(hook)
        with watched(folder, lambda call, moment: seen.append(call.replace("replace", "rename"))):
            train_into(complete, folder)
        unaudited = ("write", "fsync", "exit")
        assert reported == [call for call in seen if call not in unaudited]

    assert set(words.values()) - {"link", "symlink"} <= {*CALLS}
    ending = in_child(work)
    assert ending.code == 0, ending.text


@pytest.mark.slow
def test_a_training_killed_in_a_folder_of_its_own_is_resumed_or_leaves_a_new_one_alone(data, whole, tmp_path):
    settings = ["training.epochs=2", "training.batch=12", "network.hidden=[8]"]

    def begin(runs):
        return fit(data.features, method="aadml", settings=settings, device="cpu", runs=runs)

    found = points(tmp_path / "whole", lambda: begin(tmp_path / "whole"))
    for number in [0, 1, 2, 5, 9, 30, 80, len(found) - 1]:
        runs = tmp_path / str(number)
        assert in_child(lambda runs=runs: begin(runs), killing(number), runs).code == KILLED
        folders = list(runs.iterdir()) if runs.exists() else []
        if any(has_begun(folder) for folder in folders):
            folder = resume_run(folders[0]).folder
        else:
            before = [contents(folder) for folder in folders]
            folder = begin(runs).folder
            assert [contents(folder) for folder in folders] == before
        assert (folder / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes(), found[number]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS])
@pytest.mark.parametrize("number", [3, 17, 44, 71, 90, 118])
def test_what_the_system_refuses_half_way_is_one_line_and_resumes_to_the_same_bytes(
    complete, whole, tmp_path, number, code
):
    folder = tmp_path / "run"
    for name, content in FOREIGN.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    ending = in_child(lambda: train_into(complete, folder), failing(number, code), folder)
    assert ending.code == REFUSED, ending.text
    assert os.strerror(code) in ending.text
    assert len(ending.text.splitlines()) == 1
    train_into(complete, folder)
    resume_run(folder)
    same(folder, whole, beside=("figures", *FOREIGN))
    assert {name: (folder / name).read_bytes() for name in FOREIGN} == FOREIGN


def has_begun(folder):
    return is_run(folder) and "config.yaml" in read_manifest(folder).files


def command(*arguments):
    return [sys.executable, "-c", "from aadml.cli import main; main()", *map(str, arguments)]


@pytest.mark.slow
def test_of_two_resumes_at_once_one_is_refused_and_the_other_ends_in_the_same_bytes(interrupted, whole):
    with open_run(interrupted):  # as the first of them does
        done = subprocess.run(command("train", "--resume", interrupted), capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert "another process is writing this run" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    both = [
        subprocess.Popen(command("train", "--resume", interrupted), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    for process in both:
        process.communicate(timeout=600)
    codes = sorted(process.returncode for process in both)
    assert codes in ([0, 2], [0, 0])  # the second may come when the first is done
    same(interrupted, whole)


def test_resuming_a_finished_run_removes_what_a_killed_process_left_behind(whole, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(whole, folder)
    (folder / "state-4.safetensors").write_bytes(b"killed before it was removed")
    resume_run(folder)
    same(folder, whole)


def test_a_run_that_another_process_finished_meanwhile_is_not_scored_again(interrupted, whole, monkeypatch):
    import aadml.runs.fit as module

    prepare = module.prepare

    def slowly(*arguments):
        monkeypatch.setattr(module, "prepare", prepare)  # for the other process
        prepared = prepare(*arguments)
        assert in_child(lambda: resume_run(interrupted)).code == 0
        return prepared

    monkeypatch.setattr(module, "prepare", slowly)
    said = []
    resumed = resume_run(interrupted, on_note=said.append)
    assert "finished" in said[0]
    assert resumed.evaluation is not None
    same(interrupted, whole)


def test_evaluating_a_run_that_cannot_be_written_gives_the_result_and_says_that_it_was_not_kept(whole):
    before = contents(whole)
    notes = []
    work = in_child(lambda: f"{evaluate(whole, on_note=notes.append).map_mean} {notes}", failing(0, errno.EROFS), whole)
    assert work.code == 0, work.text
    value, said = work.text.split(" ", 1)
    assert 0 < float(value) <= 1
    assert "not added to the run" in said
    assert os.strerror(errno.EROFS) in said
    assert contents(whole) == before


@pytest.mark.slow
@pytest.mark.parametrize("pause", [0.0, 0.02, 0.3])
def test_ctrl_c_twice_is_a_plain_line_and_the_run_goes_on_later(data, tmp_path, pause, wait_until):
    arguments = ["--epochs", 5000, "--set", "network.hidden=[8]", "--set", "training.batch=12"]
    process = subprocess.Popen(
        command("train", "--data", data.features, "--runs", tmp_path / "runs", *arguments),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    wait_until(lambda: list((tmp_path / "runs").glob("*/state-*.safetensors")), process)
    process.send_signal(signal.SIGINT)
    time.sleep(pause)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    said = [line for line in errors.replace("\r", "\n").splitlines() if line.startswith("aadml: interrupted")]
    assert len(said) == 1
    assert "--resume" in said[0]
    (folder,) = (tmp_path / "runs").iterdir()
    assert not verify(folder)


def test_damaged_best_weights_are_refused_before_anything_is_trained(interrupted):
    (best,) = interrupted.glob("best-*.safetensors")
    best.write_bytes(best.read_bytes()[:-1])
    before = contents(interrupted)
    with pytest.raises(InputError, match=best.name):
        resume_run(interrupted)
    # what the log holds beyond the last commit is cut wherever a run is opened
    assert differences(before, contents(interrupted)) in ([], ["metrics.jsonl"])


def test_a_card_that_somebody_wrote_meanwhile_stays(interrupted, whole):
    (interrupted / "README.md").write_text("My notes on this run.")
    said = []
    resume_run(interrupted, on_note=said.append)
    assert (interrupted / "README.md").read_text() == "My notes on this run."
    assert "README.md is not the card that this run wrote" in said[-1]
    same(interrupted, whole, beside=("README.md", MANIFEST))


@pytest.mark.parametrize("name", [MANIFEST, "model.json"])
def test_verify_names_the_file_without_which_nothing_is_known(whole, tmp_path, name):
    model = train_model(whole, tmp_path) if name == "model.json" else copied(whole, tmp_path)
    (model / name).unlink()
    (found,) = verify(model)
    assert name in found
    assert "missing" in found


def copied(folder, root):
    for path in folder.iterdir():
        (root / "copy").mkdir(exist_ok=True)
        (root / "copy" / path.name).write_bytes(path.read_bytes())
    return root / "copy"


def train_model(whole, root):
    return resume_run(copied(whole, root)).save(root / "model")


def test_a_run_of_a_sweep_that_fails_on_a_full_disk_is_told_and_done_later(complete, whole, tmp_path):
    job = Job(tmp_path / "run", complete)
    ending = in_child(lambda: work_off(job), failing(60, errno.ENOSPC), tmp_path / "run")
    assert ending.code == 0, ending.text
    assert os.strerror(errno.ENOSPC) in ending.text
    assert work_off(job) == ""
    assert not (job.folder / FAILURE).exists()
    assert (job.folder / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()
