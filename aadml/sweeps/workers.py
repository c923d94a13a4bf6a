"""Processes that work off runs; one that dies is replaced, and its run counts as failed."""

import multiprocessing
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from types import TracebackType
from typing import Any

from aadml.sweeps.job import Job, work_off

_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Report:
    """An epoch is done, in process `worker`."""

    worker: int
    done: int
    total: int


@dataclass
class _Worker:
    number: int
    process: Any
    connection: Connection
    job: Job | None = None


class Crew:
    """So many processes, each with one thread where there are several.

    Args:
        workers: how many, at least 1.
    """

    def __init__(self, workers: int) -> None:
        self._single = workers > 1
        self._workers = [self._hired(number) for number in range(workers)]

    def __enter__(self) -> "Crew":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self._workers:
            worker.process.kill()
            worker.process.join()
            worker.connection.close()

    def work_off(self, jobs: Sequence[Job]) -> Iterator[Report | tuple[Job, str]]:
        """Work off jobs.

        Yields:
            Epochs as they are done; each job with the reason of its failure (empty where it is finished).
        """
        waiting = iter(jobs)
        for worker in self._workers:
            self._assign(worker, next(waiting, None))
        while busy := {worker.connection: worker for worker in self._workers if worker.job is not None}:
            for connection in wait(list(busy)):
                worker = busy[connection]  # type: ignore[index]
                job = worker.job
                assert job is not None
                try:
                    message = worker.connection.recv()
                except (EOFError, OSError):
                    yield job, self._replaced(worker)
                else:
                    if not isinstance(message, str):
                        yield Report(worker.number, *message)
                        continue
                    yield job, message
                self._assign(self._workers[worker.number], next(waiting, None))

    def _assign(self, worker: _Worker, job: Job | None) -> None:
        worker.job = job
        if job is not None:
            with suppress(OSError):  # a process that died while idle is found dead when it is listened to
                worker.connection.send(job)

    def _replaced(self, worker: _Worker) -> str:
        """Put a new process in the place of a dead one; return what ended it."""
        worker.process.join()
        code = worker.process.exitcode
        worker.connection.close()
        self._workers[worker.number] = self._hired(worker.number)
        ending = signal.Signals(-code).name if code is not None and code < 0 else f"exit status {code}"
        return f"its process ended with {ending}" + (" (out of memory?)" if ending == "SIGKILL" else "")

    def _hired(self, number: int) -> _Worker:
        context = multiprocessing.get_context("spawn")  # nothing of the parent's threads and locks comes along
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs, self._single, os.getpid()), daemon=True)
        with _few_threads(self._single):
            process.start()
        theirs.close()
        return _Worker(number, process, ours)


@contextmanager
def _few_threads(single: bool) -> Iterator[None]:
    """Let a process that is started here inherit one thread: the processes are the parallelism."""
    before = {name: os.environ.get(name) for name in _ONE_THREAD}
    os.environ.update(dict.fromkeys(_ONE_THREAD, "1") if single else {})
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _serve(connection: Connection, single: bool, parent: int) -> None:
    """Work off what is asked for until the other end hangs up; runs in the process of a worker."""
    import torch

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what an interruption means
    if single:
        torch.set_num_threads(1)

    def note(done: int, total: int) -> None:
        if os.getppid() != parent:
            os._exit(1)  # nobody waits for this run any more; the next call continues it from its last epoch
        connection.send((done, total))

    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            connection.send(work_off(connection.recv(), note))
