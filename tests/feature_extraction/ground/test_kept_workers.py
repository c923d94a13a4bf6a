"""Workers that are kept between tasks."""

import os
import signal
import time

import psutil
import pytest

from aadml.feature_extraction.ground.kept_workers import keep_workers, worker_pool
from aadml.feature_extraction.ground.worker_pool import Lost
from aadml.feature_extraction.ground.worker_process import Conditions


def process_of(task, report):
    if task == "crash":
        os.kill(os.getpid(), signal.SIGKILL)
    return os.getpid()


def run(*tasks, conditions=None):
    with worker_pool(process_of, 1, conditions) as pool:
        return [None if isinstance(event, Lost) else event.value for event in pool.work_off(tasks)]


def test_a_worker_is_kept_for_equal_work_within_the_context_and_ends_with_it():
    with keep_workers():
        (first,), (second,) = run("a"), run("b")
        (other,) = run("c", conditions=Conditions(time_limit=60.0))
        assert first == second != other
        assert run("crash", "d")[0] is None
        assert run("e") != [first]
    assert not any(psutil.pid_exists(process) for process in (first, other))


def test_a_worker_of_a_pool_that_raised_is_not_kept():
    used = []

    def fail():
        with worker_pool(process_of, 1) as pool:
            used.extend(event.value for event in pool.work_off(["a"]))
            raise KeyError

    with keep_workers():
        with pytest.raises(KeyError):
            fail()
        assert run("b") != used


def test_a_kept_worker_that_died_while_idle_is_replaced():
    with keep_workers():
        (first,) = run("a")
        os.kill(first, signal.SIGKILL)
        until = time.monotonic() + 10
        while psutil.Process(first).status() != psutil.STATUS_ZOMBIE and time.monotonic() < until:
            time.sleep(0.01)
        (second,) = run("b")
    assert second not in (None, first)
