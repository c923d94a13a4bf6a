"""Decoding in processes that a wall clock can kill and replace: whatever a file does to its decoder costs one clip.

A decoder may spin forever in native code, where neither a signal handler nor a thread gets a turn, or take its process
down. So each process decodes one clip at a time; the main process waits with a deadline, kills what passed it, and
starts another. A process whose parent was killed is ended by an alarm of the operating system.
"""

import multiprocessing
import os
import selectors
import signal
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

import av
import cv2
import numpy as np
from numpy.typing import NDArray

from feature_extraction.media import Frames, Limits, MediaFailure, Sound, decode

_START_SECONDS = 300.0  # imports on a busy network drive
_ORPHAN_SECONDS = 10.0  # how long after the time limit a process without a parent may live
_DEATH_SECONDS = 5.0  # a process that hung up may take a moment to write its core file
_GIVING_WAY = 10  # in steps of `nice`
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Wanted:
    """What is wanted of one modality.

    Attributes:
        inputs: what to decode.
        prepare: what to make of it in the decoding process; picklable.
        minimum_seconds: shorter clips are refused.
        pool: what to make of the prepared clip at last, there as well; None: it is wanted as it is.
    """

    inputs: Sound | Frames
    prepare: Callable[[NDArray[Any]], NDArray[Any]]
    minimum_seconds: float
    pool: Callable[[NDArray[Any]], NDArray[Any]] | None = None


@dataclass(frozen=True)
class Task:
    """One clip to be decoded.

    Attributes:
        number: the caller's name for it.
        media: per modality that is wanted, the file.
    """

    number: int
    media: Mapping[str, str]


@dataclass(frozen=True)
class Part:
    """What became of one modality of a clip: `prepared`, or a reason and a detail.

    Attributes:
        modality: of the clip.
        prepared: what the extractor made of it in the decoding process.
        reason: a key of `REASONS`, or empty.
        detail: what was seen.
        warnings: what is odd about a clip that was accepted.
        start: when its sound or picture begins, in seconds after the beginning of the file.
        seconds: how long it lasts.
    """

    modality: str
    prepared: NDArray[Any] | None = None
    reason: str = ""
    detail: str = ""
    warnings: tuple[str, ...] = ()
    start: float = 0.0
    seconds: float = 0.0


@dataclass
class _Worker:
    process: Any
    connection: Connection
    deadline: float
    started: bool = False
    task: Task | None = None
    parts: list[Part] = field(default_factory=list)
    hung_up: bool = False

    def is_late(self) -> bool:
        """Tell whether its time is up; one that has something to say only waits for this process, which was busy."""
        return time.monotonic() > self.deadline and not self.connection.poll()


def decode_all(
    tasks: Iterator[Task],
    wanted: Mapping[str, Wanted],
    *,
    workers: int,
    time_limit: float,
    limits: Limits,
    gives_way: bool = False,
) -> Generator[tuple[Task, list[Part]]]:
    """Decode clips in processes of their own.

    Args:
        tasks: the clips; the next one is asked for when a process is free.
        wanted: what is wanted of each modality.
        workers: how many processes.
        time_limit: seconds a clip may take.
        limits: what is too large.
        gives_way: whether the processes take only the time that this one, busy with a network, leaves on the
            processors: a network whose threads wait for each other loses more than a decoder does.

    Yields:
        Each task with its parts, in the order in which they are finished. After a part that failed as `timeout` or
        `crashed` the remaining modalities of that clip are not tried.

    Raises:
        RuntimeError: a process ended before it was ready: a defect of the installation, not of a clip.
    """
    crew: list[_Worker] = []
    listening = selectors.DefaultSelector()

    def hire() -> _Worker:
        worker = _hired(wanted, time_limit, limits, gives_way)
        listening.register(worker.connection, selectors.EVENT_READ, worker)
        return worker

    try:
        task = next(tasks, None)
        while task is not None or any(worker.task for worker in crew):
            while task is not None and len(crew) < workers:
                crew.append(hire())
            for worker in crew:
                if task is not None and worker.started and worker.task is None:
                    _assign(worker, task, time_limit)
                    task = next(tasks, None)
            finished = _heard(listening, min(worker.deadline for worker in crew), time_limit)
            for position, worker in enumerate(crew):
                if worker.hung_up or worker.is_late():
                    listening.unregister(worker.connection)
                    finished += _dismissed(worker, time_limit)
                    crew[position] = hire()
            yield from finished
    finally:
        for worker in crew:
            worker.process.kill()
            worker.process.join()
            worker.connection.close()
        listening.close()


def _hired(wanted: Mapping[str, Wanted], time_limit: float, limits: Limits, gives_way: bool) -> _Worker:
    context = multiprocessing.get_context("spawn")  # nothing of the parent's threads, locks or open files comes along
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, dict(wanted), time_limit, limits, gives_way), daemon=True)
    with _single_threaded():
        process.start()
    theirs.close()
    return _Worker(process, ours, deadline=time.monotonic() + _START_SECONDS)


def _assign(worker: _Worker, task: Task, time_limit: float) -> None:
    worker.task, worker.parts = task, []
    worker.deadline = time.monotonic() + time_limit
    try:
        worker.connection.send(dict(task.media))
    except OSError:
        worker.hung_up = True  # it died while it was idle; it is replaced, and the clip is counted as crashed


def _heard(listening: selectors.BaseSelector, deadline: float, time_limit: float) -> list[tuple[Task, list[Part]]]:
    """Wait until a process has something to say, or a deadline has passed; return the tasks that are finished."""
    finished = []
    timeout = None if deadline == float("inf") else max(0.0, deadline - time.monotonic())
    for key, _ in listening.select(timeout):
        worker: _Worker = key.data
        try:
            finished += _listened(worker, time_limit)
        except (EOFError, OSError):
            worker.hung_up = True
            worker.process.join(_DEATH_SECONDS)
    return finished


def _listened(worker: _Worker, time_limit: float) -> list[tuple[Task, list[Part]]]:
    """Take one message; return the task where it is finished.

    Raises:
        EOFError: the process died (or OSError, if in the middle of a message), and has said all that it could.
    """
    message: Part | None = worker.connection.recv()
    if message is None:
        worker.started, worker.deadline = True, float("inf")
        return []
    assert worker.task is not None
    worker.parts.append(message)
    if len(worker.parts) < len(worker.task.media):
        if time.monotonic() > worker.deadline:  # it was kept waiting and goes on only now
            worker.deadline = time.monotonic() + time_limit
        return []
    finished = (worker.task, worker.parts)
    worker.task, worker.deadline = None, float("inf")
    return [finished]


def _dismissed(worker: _Worker, time_limit: float) -> list[tuple[Task, list[Part]]]:
    """End a process that died or passed its deadline; return its task with what is known about it."""
    late = worker.process.is_alive()
    worker.process.kill()
    worker.process.join()
    finished: list[tuple[Task, list[Part]]] = []
    with suppress(EOFError, OSError):
        while not finished and worker.connection.poll():  # what it said before
            finished = _listened(worker, time_limit)
    worker.connection.close()
    code = worker.process.exitcode
    if not worker.started:
        what = "did not start in time" if late else f"ended with {_ending(code)} at its start"
        raise RuntimeError(f"a decoding process {what}")
    if finished or worker.task is None:
        return finished
    done = {part.modality for part in worker.parts}
    modality = next((name for name in worker.task.media if name not in done), next(iter(worker.task.media)))
    detail = "killed at the time limit" if late else f"the decoding process ended with {_ending(code)}"
    part = Part(modality, reason="timeout" if late else "crashed", detail=detail)
    return [(worker.task, [*(known for known in worker.parts if known.modality != modality), part])]


def _ending(code: int | None) -> str:
    if code is not None and code < 0:
        return signal.Signals(-code).name
    return f"exit status {code}"


@contextmanager
def _single_threaded() -> Iterator[None]:
    """Let a process that is started here inherit one thread: the processes are the parallelism, and sums stay equal."""
    before = {name: os.environ.get(name) for name in _ONE_THREAD}
    os.environ.update(dict.fromkeys(_ONE_THREAD, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _serve(
    connection: Connection, wanted: Mapping[str, Wanted], time_limit: float, limits: Limits, gives_way: bool
) -> None:
    """Decode what is asked for until the other end hangs up; runs in the decoding process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what an interruption means
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    os.nice(_GIVING_WAY if gives_way else 0)
    cv2.setNumThreads(1)
    av.logging.set_level(None)
    try:
        connection.send(None)  # ready
        while True:
            media = connection.recv()
            for modality, path in media.items():
                signal.setitimer(signal.ITIMER_REAL, time_limit + _ORPHAN_SECONDS)
                part = _part(modality, path, wanted[modality], limits)
                signal.setitimer(signal.ITIMER_REAL, 0)
                connection.send(part)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return


def _part(modality: str, path: str, wanted: Wanted, limits: Limits) -> Part:
    try:
        clip = decode(path, wanted.inputs, limits, wanted.minimum_seconds)
        prepared = wanted.prepare(clip.values)
        if wanted.pool is not None:
            prepared = wanted.pool(prepared)
    except MediaFailure as failure:
        return Part(modality, reason=failure.reason, detail=failure.detail)
    except MemoryError:
        return Part(modality, reason="too-large", detail="not enough memory")
    except Exception as error:  # whatever else one clip does, it costs one clip; the detail says what it was
        return Part(modality, reason="crashed", detail=" ".join(f"{type(error).__name__}: {error}".split()))
    if np.issubdtype(prepared.dtype, np.floating) and not np.isfinite(prepared).all():
        return Part(modality, reason="corrupt", detail="its description holds NaN or infinity")
    return Part(modality, prepared=prepared, warnings=clip.remarks, start=clip.start, seconds=clip.seconds)
