import os
import sys

import pytest

from aadml.feature_extraction.ground.worker_process import DONE, RAISED, READY, REPORT, Conditions, ending, start

WORK = """
import os

def work(task, report):
    if task == "raise":
        raise LookupError("no")
    report(os.environ["OMP_NUM_THREADS"])
    return task
"""


@pytest.fixture
def work(tmp_path, monkeypatch):
    (tmp_path / "worker_process_work.py").write_text(WORK)
    monkeypatch.syspath_prepend(tmp_path)
    import worker_process_work

    yield worker_process_work.work
    del sys.modules["worker_process_work"]


def test_a_process_answers_with_messages_and_exits_when_the_connection_is_closed(work, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    process, connection = start(work, Conditions())
    assert connection.recv() == (READY, None)
    connection.send("task")
    assert [connection.recv(), connection.recv()] == [(REPORT, "1"), (DONE, "task")]
    connection.send("raise")
    kind, error = connection.recv()
    assert (kind, str(error)) == (RAISED, "no")
    connection.close()
    process.join(30)
    assert process.exitcode == 0
    assert os.environ["OMP_NUM_THREADS"] == "7"


@pytest.mark.parametrize(("code", "words"), [(-9, "SIGKILL"), (3, "exit status 3")])
def test_an_ending_is_a_signal_or_a_status(code, words):
    assert ending(code) == words
