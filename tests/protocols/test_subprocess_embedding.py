"""Fresh processes of the audit: limits, errors and isolated state."""

import os
import signal
import subprocess
import tempfile
import time

import pytest
import torch

from aadml.feature_extraction.ground.errors import InputError
from aadml.protocols.audit import audit
from aadml.protocols.audit_checks import CHECKS
from aadml.protocols.pipelines import FunctionPipeline, of_command
from aadml.protocols.subprocess_embedding import in_fresh_process


def test_an_encoder_that_hangs_is_ended(subject):
    def hangs(features, labels):
        time.sleep(60)

    with pytest.raises(InputError, match=r"longer than 0\.5 s"):
        audit(FunctionPipeline(hangs), subject.splits, CHECKS, seconds=0.5)


def test_a_command_that_hangs_is_ended_and_leaves_nothing(subject, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    duration = f"60.{os.getpid()}"
    with pytest.raises(InputError, match="took longer than"):
        audit(of_command(f"sh -c 'sleep {duration}' {{input}} {{output}}"), subject.splits, CHECKS, seconds=3.0)
    running = ""
    for _ in range(50):  # the kernel ends the processes of a namespace one after the other
        running = subprocess.run(["ps", "-eo", "stat,args"], capture_output=True, text=True, check=False).stdout
        if not any(f"sleep {duration}" in line and line[0] != "Z" for line in running.splitlines()):
            break
        time.sleep(0.1)
    else:
        pytest.fail(running)
    assert [*tmp_path.iterdir()] == []


def test_results_come_back_and_state_does_not():
    state = []

    def work():
        state.append(1)
        return [{"audio": torch.ones(2, 3)}, {"visual": torch.zeros(1, 2), "audio": torch.zeros(0, 2)}]

    results = in_fresh_process(work, seconds=30.0, channels=lambda: ["air"])
    first, second = results.vectors
    assert results.channels == ("air",)
    assert state == []
    assert torch.equal(first["audio"], torch.ones(2, 3))
    assert list(second) == ["visual", "audio"]
    assert second["audio"].shape == (0, 2)


def test_a_pass_has_one_thread_and_what_it_leaves_is_removed(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    children = tmp_path / "children"

    def work():
        child = subprocess.Popen(["sleep", "60"])
        children.write_text(f"{child.pid} {os.getpgrp()}")
        tempfile.mkdtemp()
        return [{"threads": torch.tensor([torch.get_num_threads()])}]

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert in_fresh_process(work, seconds=30.0).vectors[0]["threads"].tolist() == [1]
    finally:
        torch.set_num_threads(before)
    child, group = map(int, children.read_text().split())
    assert group != os.getpgrp()
    assert [*tmp_path.iterdir()] == [children]
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(child)], capture_output=True, text=True, check=False).stdout
    assert state[:1] in ("", "Z")  # the child has ended too


def test_a_pass_without_time_is_ended_before_it_has_done_its_work(tmp_path):
    def work():
        time.sleep(1)
        (tmp_path / "done").touch()

    with pytest.raises(InputError, match=r"a process of the audit took longer than 0 s; raise --time-limit"):
        in_fresh_process(work, seconds=0.0)
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (lambda: 1 / 0, "^ZeroDivisionError: division by zero$"),
        (lambda: [{}][int("no\nnumber")], "^ValueError: invalid literal .*: 'no.*number'$"),
        (lambda: os._exit(3), "the process of the encoder ended without a result"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "the process of the encoder ended without a result"),
    ],
)
def test_a_failure_is_one_sentence(failure, message):
    with pytest.raises(InputError, match=message):
        in_fresh_process(failure, seconds=30.0)
