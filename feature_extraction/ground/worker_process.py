"""Start, message loop and end of a worker process."""

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from threading import Lock
from typing import Any, Literal, TypeVar

from aadml.feature_extraction.ground.consent import decision, inherit
from aadml.feature_extraction.ground.forwarded_warnings import forward_warnings
from aadml.feature_extraction.ground.processor_time import limit_processor_time

T = TypeVar("T")

_ORPHAN_SECONDS = 10.0  # lifetime of a process without a parent, after the time limit
_GIVING_WAY = 10  # in steps of `nice`
_SAFE_PATH = {"PYTHONSAFEPATH": "1"}
"""Setting that prevents a new interpreter from importing the modules of `multiprocessing` from the current folder."""
_STARTS = Lock()
"""Held while a process starts, because the environment and the main module of this process are changed meanwhile."""
os.register_at_fork(after_in_child=_STARTS._at_fork_reinit)  # type: ignore[attr-defined]
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OPENCV_FOR_THREADS_NUM")

Message = Literal["ready", "report", "done", "raised", "warned"]
"""Kind of a message of a worker; a message is (kind, value)."""

Work = Callable[[T, Callable[[Any], None]], Any]
"""(task, report) -> result; runs in a worker, may call `report` repeatedly, and must be picklable."""


@dataclass(frozen=True)
class Conditions:
    """Limits and environment of the workers.

    Attributes:
        time_limit: wall-clock seconds for a task; None for no limit.
        processor_limit: seconds of processor time for a task from one report to the next; None for no limit. Unlike
            `time_limit`, this limit does not depend on the load of the machine.
        one_thread: whether each worker computes with a single thread. With more threads, the parallel
            workers would compete for processors.
        gives_way: whether workers run with low priority. Sharing processors slows a network in the parent process
            more than the workers, because the threads of a network wait for each other.
        grace: seconds in which a worker may finish its task when the pool closes. The result is discarded.
        setup: function that is called once in each worker; None for no function.
    """

    time_limit: float | None = None
    processor_limit: float | None = None
    one_thread: bool = True
    gives_way: bool = False
    grace: float = 0.0
    setup: Callable[[], None] | None = None


def start(work: Work[Any], conditions: Conditions) -> tuple[Any, Connection]:
    """Start a worker and return it with the parent's end of the connection."""
    context = multiprocessing.get_context("spawn")  # inherits no threads, locks or files
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, work, conditions, decision()), daemon=True)
    threads = dict.fromkeys(_ONE_THREAD, "1") if conditions.one_thread else {}
    with _STARTS, _inherited({**_SAFE_PATH, **threads}), _interrupts_held(), _script_left_alone():
        process.start()
    theirs.close()
    return process, ours


@contextmanager
def _script_left_alone() -> Iterator[None]:
    """Prevent a new process from running the main script again.

    `multiprocessing` runs the main file in every new process, because this file may define the functions to call. The
    main file never defines the pool's work. A script without `if __name__ == "__main__"` would start processes without
    end.
    """
    main = sys.modules["__main__"]
    hidden = {name: vars(main).pop(name) for name in ("__file__", "__spec__") if name in vars(main)}
    main.__spec__ = None
    try:
        yield
    finally:
        vars(main).update({"__spec__": None} | hidden)


def ending(code: int | None) -> str:
    """Return the name of the signal that ended a process, or its exit status as text."""
    if code is not None and code < 0:
        return signal.Signals(-code).name
    return f"exit status {code}"


@contextmanager
def _inherited(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for processes started within the context."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Block SIGINT within the context, so that processes started there do not receive Ctrl-C."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _deliver(connection: Connection, lock: Lock, kind: Message, value: Any) -> None:
    """Send a message from any thread of a worker."""
    try:
        with lock:
            connection.send((kind, value))
    except (BrokenPipeError, ConnectionResetError):
        os._exit(1)  # the parent has ended; an exception would look like a failure of the task


def _serve(connection: Connection, work: Work[Any], conditions: Conditions, consented: Any) -> None:
    """Process tasks in the worker until the connection is closed."""
    inherit(consented)
    deliver = partial(_deliver, connection, Lock())
    forward_warnings(partial(deliver, "warned"))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    os.nice(_GIVING_WAY if conditions.gives_way else 0)
    if conditions.setup is not None:
        conditions.setup()
    longest = 0.0 if conditions.time_limit is None else conditions.time_limit + _ORPHAN_SECONDS

    def begin() -> None:
        signal.setitimer(signal.ITIMER_REAL, longest)
        limit_processor_time(conditions.processor_limit or 0.0)

    def send(kind: Message, value: Any = None) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        limit_processor_time(0.0)
        deliver(kind, value)
        if kind == "report":
            begin()

    send("ready")
    with suppress(EOFError, ConnectionResetError):
        while True:
            task = connection.recv()
            begin()
            try:
                result = work(task, lambda value: send("report", value))
            except Exception as error:
                send("raised", error)
            else:
                send("done", result)
