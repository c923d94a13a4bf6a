import os
import signal
import sys
import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

from aadml.feature_extraction.ground import worker_process
from aadml.feature_extraction.ground.worker_process import Conditions, ending, start

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
    assert connection.recv() == ("ready", None)
    connection.send("task")
    assert [connection.recv(), connection.recv()] == [("report", "1"), ("done", "task")]
    connection.send("raise")
    kind, error = connection.recv()
    assert (kind, str(error)) == ("raised", "no")
    connection.close()
    process.join(30)
    assert process.exitcode == 0
    assert os.environ["OMP_NUM_THREADS"] == "7"


@pytest.mark.parametrize(
    ("code", "words"), [(-9, "SIGKILL"), (3, "exit status 3"), (0, "exit status 0"), (None, "exit status None")]
)
def test_an_ending_is_a_signal_or_a_status(code, words):
    assert ending(code) == words


def test_workers_have_one_thread_and_no_limits_by_default():
    assert Conditions() == Conditions(
        time_limit=None, processor_limit=None, one_thread=True, gives_way=False, grace=0.0, setup=None
    )


class _Pipe:
    """Connection that delivers tasks and notes the messages of a worker among its calls."""

    def __init__(self, tasks, calls):
        self.tasks, self.calls = iter(tasks), calls

    def recv(self):
        try:
            return next(self.tasks)
        except StopIteration:
            raise EOFError from None

    def send(self, message):
        self.calls.append(message)


@pytest.mark.parametrize("limited", [True, False])
def test_a_worker_sends_its_messages_outside_its_limits(monkeypatch, limited):
    def work(task, report):
        calls.append(task)
        report("half")
        if task == "bad":
            raise LookupError("not here")
        return task.upper()

    calls = []
    for place, name in (
        (worker_process, "limit_processor_time"), (worker_process, "inherit"), (os, "nice"), (signal, "signal"),
        (signal, "setitimer"),
    ):  # fmt: skip
        monkeypatch.setattr(place, name, lambda *values, name=name: calls.append((name, *values)))
    monkeypatch.setattr(worker_process, "forward_warnings", lambda deliver: deliver("a warning"))
    conditions = Conditions(setup=lambda: calls.append("set up"))
    if limited:
        conditions = replace(conditions, time_limit=5.0, processor_limit=2.0, gives_way=True)
    worker_process._serve(_Pipe(["good", "bad"], calls), work, conditions, "consent")
    begin, end = (
        [("setitimer", signal.ITIMER_REAL, wall), ("limit_processor_time", processor)]
        for wall, processor in ((15.0, 2.0) if limited else (0.0, 0.0), (0, 0.0))
    )
    assert calls[:6] == [
        ("inherit", "consent"), ("warned", "a warning"), ("signal", signal.SIGINT, signal.SIG_IGN),
        ("signal", signal.SIGALRM, signal.SIG_DFL), ("nice", 10 if limited else 0), "set up",
    ]  # fmt: skip
    kind, error = calls.pop()
    assert (kind, repr(error)) == ("raised", "LookupError('not here')")
    reported = [*end, ("report", "half"), *begin, *end]
    assert calls[6:] == [
        *end, ("ready", None), *begin, "good", *reported, ("done", "GOOD"),
        *begin, "bad", *reported,
    ]  # fmt: skip


def test_a_worker_without_a_parent_ends(monkeypatch):
    def fails(_):
        raise BrokenPipeError

    codes = []
    monkeypatch.setattr(os, "_exit", codes.append)
    worker_process._deliver(SimpleNamespace(send=fails), threading.Lock(), "done", 3)
    assert codes == [1]


def test_a_fork_during_a_start_does_not_inherit_the_lock():
    with worker_process._STARTS:
        child = os.fork()
        if not child:
            os._exit(int(worker_process._STARTS.locked()))
        _, status = os.waitpid(child, 0)
    assert status == 0


def test_threads_that_start_processes_leave_the_environment_as_it_was(monkeypatch):
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    begun = threading.Event()

    class Slow:
        def __init__(self, **_):
            self.seconds = 0.3 if begun.is_set() else 0.1

        def start(self):
            begun.set()
            time.sleep(self.seconds)  # the second thread that starts a process ends last

    context = SimpleNamespace(Process=Slow, Pipe=lambda: (SimpleNamespace(), SimpleNamespace(close=lambda: None)))
    monkeypatch.setattr(worker_process.multiprocessing, "get_context", lambda kind: context)
    first, second = (threading.Thread(target=start, args=(len, Conditions())) for _ in range(2))
    first.start()
    begun.wait()
    second.start()
    first.join()
    second.join()
    assert "PYTHONSAFEPATH" not in os.environ
