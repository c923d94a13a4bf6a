"""Processes that work off tasks and that a wall clock can kill and replace: whatever a task does, it costs one task.

Native code may spin forever, where neither a signal handler nor a thread gets a turn, or take its process down. So each
process does one task at a time; this one waits, with a deadline where there is a limit, kills what passed it, and
starts another. Nothing of this process's threads, locks and open files goes along; its `sys.path` does. An interruption
is the business of this process alone, and a process whose parent is gone ends.
"""

import os
import selectors
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Generic, TypeVar

from aadml.feature_extraction.ground.processor_time import reached_limit
from aadml.feature_extraction.ground.worker_process import DONE, RAISED, READY, REPORT, Conditions, Work, ending, start

T = TypeVar("T")

_START_SECONDS = 300.0  # imports on a busy network drive
_DEATH_SECONDS = 5.0  # a process that hung up may take a moment to write its core file


def processors() -> int:
    """Count the processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class Reported(Generic[T]):
    """Process number `worker` reported `value` about a task that goes on."""

    worker: int
    task: T
    value: Any


@dataclass(frozen=True)
class Finished(Generic[T]):
    """A task came to its end with `value`."""

    task: T
    value: Any


@dataclass(frozen=True)
class Lost(Generic[T]):
    """The process of a task died ("SIGKILL", "exit status 3"), or was killed because it was too late."""

    task: T
    ending: str
    late: bool


Event = Reported[T] | Finished[T] | Lost[T]


@dataclass
class _Worker(Generic[T]):
    number: int
    process: Any
    connection: Connection
    deadline: float
    started: bool = False
    busy: bool = False
    task: T | None = None
    hung_up: bool = False

    def is_late(self) -> bool:
        """Tell whether its time is up; one that has something to say only waits for this process, which was busy."""
        return time.monotonic() > self.deadline and not self.connection.poll()


class WorkerPool(Generic[T]):
    """Processes for tasks of one kind; use it as a context, at whose end no process is left.

    Args:
        work: what is done with a task.
        workers: how many processes; one is started when there is a task for it.
        conditions: under which they work.
    """

    def __init__(self, work: Work[T], workers: int, conditions: Conditions | None = None) -> None:
        self._work = work
        self._count = workers
        self._conditions = conditions or Conditions()
        self._limit = self._conditions.time_limit or float("inf")
        self._workers: list[_Worker[T]] = []
        self._listening = selectors.DefaultSelector()
        self._raised: Exception | None = None

    def __enter__(self) -> "WorkerPool[T]":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listening.close()
        for worker in self._workers:
            worker.connection.close()  # who finds nobody listening ends
        until = time.monotonic() + self._conditions.grace
        for worker in self._workers:
            worker.process.join(max(0.0, until - time.monotonic()))
            worker.process.kill()
            worker.process.join()

    def work_off(self, tasks: Iterable[T]) -> Generator[Event[T]]:
        """Work off tasks; the next one is asked for when a process is free.

        Yields:
            What happens, as it happens; every task is at last finished or lost.

        Raises:
            RuntimeError: a process ended before it was ready: a defect of the installation, not of a task.
            Exception: what the work itself raised.
        """
        waiting = iter(tasks)
        more, task = _next(waiting)
        while more or any(worker.busy for worker in self._workers):
            while more and len(self._workers) < self._count:
                self._workers.append(self._started(len(self._workers)))
            for worker in self._workers:
                if more and worker.started and not worker.busy:
                    self._assign(worker, task)
                    more, task = _next(waiting)
            events = self._heard(min(worker.deadline for worker in self._workers))
            for position, worker in enumerate(self._workers):
                if worker.hung_up or worker.is_late():
                    self._listening.unregister(worker.connection)
                    events += self._dismissed(worker)
                    self._workers[position] = self._started(position)
            if self._raised is not None:
                raise self._raised
            yield from events

    def _started(self, number: int) -> _Worker[T]:
        process, ours = start(self._work, self._conditions)
        worker: _Worker[T] = _Worker(number, process, ours, time.monotonic() + _START_SECONDS)
        self._listening.register(ours, selectors.EVENT_READ, worker)
        return worker

    def _assign(self, worker: _Worker[T], task: Any) -> None:
        worker.task, worker.busy = task, True
        worker.deadline = time.monotonic() + self._limit
        try:
            worker.connection.send(task)
        except OSError:
            worker.hung_up = True  # it died while it was idle; it is replaced, and the task is lost

    def _heard(self, deadline: float) -> list[Event[T]]:
        """Wait until a process has something to say, or a deadline has passed."""
        events: list[Event[T]] = []
        timeout = None if deadline == float("inf") else max(0.0, deadline - time.monotonic())
        for key, _ in self._listening.select(timeout):
            worker: _Worker[T] = key.data
            try:
                events += self._listened(worker)
            except (EOFError, OSError):
                worker.hung_up = True
                worker.process.join(_DEATH_SECONDS)
        return events

    def _listened(self, worker: _Worker[T]) -> list[Event[T]]:
        """Take one message.

        Raises:
            EOFError: the process died (or OSError, if in the middle of a message), and has said all that it could.
        """
        kind, value = worker.connection.recv()
        if kind == RAISED:
            self._raised = self._raised or value
            kind = DONE
        if kind == READY:
            worker.started, worker.deadline = True, float("inf")
            return []
        task: Any = worker.task
        if kind == REPORT:
            if time.monotonic() > worker.deadline:  # it was kept waiting and goes on only now
                worker.deadline = time.monotonic() + self._limit
            return [Reported(worker.number, task, value)]
        worker.task, worker.busy, worker.deadline = None, False, float("inf")
        return [Finished(task, value)]

    def _dismissed(self, worker: _Worker[T]) -> list[Event[T]]:
        """End a process that died or passed its deadline; say what became of its task."""
        late = worker.process.is_alive()
        worker.process.kill()
        worker.process.join()
        late = late or reached_limit(worker.process.exitcode)
        events: list[Event[T]] = []
        with suppress(EOFError, OSError):
            while worker.busy and worker.connection.poll():  # what it said before
                events += self._listened(worker)
        worker.connection.close()
        ended = ending(worker.process.exitcode)
        if not worker.started:
            what = "did not start in time" if late else f"ended with {ended} at its start"
            raise RuntimeError(f"a worker process {what}")
        task: Any = worker.task
        return [*events, Lost(task, ended, late)] if worker.busy else events


def _next(tasks: Iterator[T]) -> tuple[bool, T | None]:
    for task in tasks:
        return True, task
    return False, None
