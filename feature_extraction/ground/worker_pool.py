"""Pool of worker processes with a deadline for each task. A task that hangs or crashes does not affect other tasks.

Native code may crash its process or never return. No signal handler or thread can end such code. Each worker therefore
processes one task at a time. The pool waits for messages until the deadline, kills a late worker, and starts another.
Workers inherit `sys.path`, but no threads, locks or open files. Only the parent process receives Ctrl-C, and a worker
without a parent exits. Warnings of workers go to the logger "aadml" of the parent process.
"""

import logging
import os
import selectors
import time
from collections.abc import Generator, Iterable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, Generic, TypeVar

from aadml.feature_extraction.ground.processor_time import reached_limit
from aadml.feature_extraction.ground.worker_process import Conditions, Work, ending, start

T = TypeVar("T")

_log = logging.getLogger("aadml")

_END: Any = object()  # marks the end of the tasks

_START_SECONDS = 300.0  # long enough for imports from a busy network drive
_DEATH_SECONDS = 5.0  # a crashed process may still write its core file


def processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class Reported(Generic[T]):
    """Intermediate `value` that a worker reports while a task continues."""

    task: T
    value: Any


@dataclass(frozen=True)
class Finished(Generic[T]):
    """Result `value` of a task."""

    task: T
    value: Any


@dataclass(frozen=True)
class Lost(Generic[T]):
    """Unfinished task of a worker that died or was killed.

    Attributes:
        task: the task.
        ending: signal that ended the worker ("SIGKILL"), or exit status of the worker ("exit status 3").
        late: whether the worker was killed at a time limit.
    """

    task: T
    ending: str
    late: bool


Event = Reported[T] | Finished[T] | Lost[T]


@dataclass
class _Worker(Generic[T]):
    process: Any
    connection: Connection
    deadline: float
    started: bool = False
    busy: bool = False
    task: T | None = None
    hung_up: bool = False

    def is_late(self) -> bool:
        """Return whether the deadline has passed. A worker with unread messages is never late."""
        return time.monotonic() > self.deadline and not self.connection.poll()


class WorkerPool(Generic[T]):
    """Pool of worker processes, as a context manager; all processes end with the context.

    Args:
        work: function of a task.
        workers: number of processes, which are started for the first task.
        conditions: limits and environment of the workers.
    """

    def __init__(self, work: Work[T], workers: int, conditions: Conditions | None = None) -> None:
        self._work = work
        self._count = workers
        self._conditions = conditions or Conditions()
        self._limit = self._conditions.time_limit or float("inf")
        self._workers: list[_Worker[T]] = []
        self._listening = selectors.DefaultSelector()
        self._raised: Exception | None = None
        self._warnings: set[str] = set()  # logged once, although each worker has the same

    def is_alive(self) -> bool:
        """Return whether every started process is alive."""
        return all(worker.process.is_alive() for worker in self._workers)

    def __enter__(self) -> "WorkerPool[T]":
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.close()
        for worker in self._workers:
            worker.connection.close()  # a worker exits when its connection is closed
        until = time.monotonic() + self._conditions.grace
        for worker in self._workers:
            worker.process.join(max(0.0, until - time.monotonic()))
            worker.process.kill()
            worker.process.join()

    def work_off(self, tasks: Iterable[T]) -> Generator[Event[T]]:
        """Process tasks, with at most one drawn task waiting for a free worker.

        Yields:
            Events as they occur; the last event of every task is Finished or Lost.

        Raises:
            RuntimeError: a worker ended before it was ready, or was not ready in time. A possible cause is a
                defective installation.
            Exception: `work` raised this exception.
        """
        waiting = iter(tasks)
        task = next(waiting, _END)
        while task is not _END or any(worker.busy for worker in self._workers):
            while task is not _END and len(self._workers) < self._count:
                self._workers.append(self._started())
            for worker in self._workers:
                if task is not _END and worker.started and not worker.busy:
                    self._assign(worker, task)
                    task = next(waiting, _END)
            events = self._received(min(worker.deadline for worker in self._workers))
            for position, worker in enumerate(self._workers):
                if worker.hung_up or worker.is_late():
                    self._listening.unregister(worker.connection)
                    events += self._ended(worker)
                    self._workers[position] = self._started()
            if self._raised is not None:
                raise self._raised
            yield from events

    def _started(self) -> _Worker[T]:
        process, ours = start(self._work, self._conditions)
        worker: _Worker[T] = _Worker(process, ours, time.monotonic() + _START_SECONDS)
        self._listening.register(ours, selectors.EVENT_READ, worker)
        return worker

    def _assign(self, worker: _Worker[T], task: Any) -> None:
        worker.task, worker.busy, worker.deadline = task, True, time.monotonic() + self._limit
        try:
            worker.connection.send(task)
        except OSError:
            worker.hung_up = True  # the idle worker died and is replaced; the task is lost

    def _received(self, deadline: float) -> list[Event[T]]:
        """Wait for messages, at most until the deadline, and return their events."""
        events: list[Event[T]] = []
        timeout = None if deadline == float("inf") else max(0.0, deadline - time.monotonic())
        for key, _ in self._listening.select(timeout):
            worker: _Worker[T] = key.data
            try:
                events += self._read(worker)
            except (EOFError, OSError):
                worker.hung_up = True
                worker.process.join(_DEATH_SECONDS)
        return events

    def _read(self, worker: _Worker[T]) -> list[Event[T]]:
        """Read one message and return its events.

        Raises:
            EOFError: the process died, and all messages are read.
            OSError: the process died in the middle of a message.
        """
        kind, value = worker.connection.recv()
        if kind == "warned":
            if value not in self._warnings:
                _log.warning("%s", value)
            self._warnings.add(value)
            return []
        if kind == "raised":
            self._raised = self._raised or value
            kind = "done"
        if kind == "ready":
            worker.started, worker.deadline = True, float("inf")
            return []
        task: Any = worker.task
        if kind == "report":
            if time.monotonic() > worker.deadline:  # this process was busy; the worker continues only now
                worker.deadline = time.monotonic() + self._limit
            return [Reported(task, value)]
        worker.task, worker.busy, worker.deadline = None, False, float("inf")
        return [Finished(task, value)]

    def _ended(self, worker: _Worker[T]) -> list[Event[T]]:
        """Shut down a dead or late worker, and return the remaining events of its task.

        Raises:
            RuntimeError: the worker died or was late before it was ready.
        """
        late = worker.process.is_alive()
        worker.process.kill()
        worker.process.join()
        late = late or reached_limit(worker.process.exitcode)
        events: list[Event[T]] = []
        with suppress(EOFError, OSError):
            while worker.busy and worker.connection.poll():  # messages that were sent before its end
                events += self._read(worker)
        worker.connection.close()
        cause = ending(worker.process.exitcode)
        if not worker.started:
            problem = "did not start in time" if late else f"ended with {cause} at its start"
            raise RuntimeError(f"a worker process {problem}")
        task: Any = worker.task
        return [*events, Lost(task, cause, late)] if worker.busy else events
