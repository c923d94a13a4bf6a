"""Workers that are kept between tasks."""

import os
import signal
import time

import psutil
import pytest

from aadml.feature_extraction.ground import kept_workers
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


@pytest.fixture
def pools(monkeypatch):
    """The pools that are built instead of real ones."""
    built = []

    class Pool:
        def __init__(self, *arguments):
            self.arguments, self.open, self.alive = arguments, True, True
            built.append(self)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.open = False

        def is_alive(self):
            return self.alive

    monkeypatch.setattr(kept_workers, "WorkerPool", Pool)
    return built


def test_a_pool_is_reused_in_the_innermost_context_and_ends_with_it(pools):
    conditions = Conditions(time_limit=1.0)
    with worker_pool(process_of, 2, conditions) as alone:
        assert alone.arguments == (process_of, 2, conditions)
    assert not alone.open
    with keep_workers():
        with worker_pool(process_of, 1) as first, worker_pool(process_of, 1) as second:
            assert first is not second
        with keep_workers():
            with worker_pool(process_of, 1) as inner:
                assert inner not in (first, second)
            with worker_pool(process_of, 1) as again:
                assert again is inner
            with worker_pool(process_of, 2) as other:
                assert other is not inner
        assert [pool.open for pool in pools] == [False, True, True, False, False]
        first.alive = second.alive = False
        with worker_pool(process_of, 1) as third:
            assert third not in (first, second)
            assert [first.open, second.open].count(False) == 1
    assert not any(pool.open for pool in pools)


def test_a_pool_that_is_used_longer_than_the_context_is_closed(pools):
    with keep_workers():
        using = worker_pool(process_of, 1)
        pool = using.__enter__()
    assert pool.open
    using.__exit__(None, None, None)
    assert not pool.open
