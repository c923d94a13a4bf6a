"""One process of a pool: how it is started, what it does, how it ends."""

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from aadml.feature_extraction.ground.consent import decision, inherit
from aadml.feature_extraction.ground.processor_time import limit_processor_time

T = TypeVar("T")

_ORPHAN_SECONDS = 10.0  # how long after the time limit a process without a parent may live
_GIVING_WAY = 10  # in steps of `nice`
_SAFE_PATH = {"PYTHONSAFEPATH": "1"}
"""What keeps a new interpreter from importing the modules of `multiprocessing` from the current folder."""
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

READY, REPORT, DONE, RAISED = range(4)
"""What a message of a process is: (one of these, a value)."""

Work = Callable[[T, Callable[[Any], None]], Any]
"""(task, report) -> result; runs in a process of the pool, may call `report` on the way, must be picklable."""


@dataclass(frozen=True)
class Conditions:
    """Under which processes work.

    Attributes:
        time_limit: seconds that a task may take; None for no limit.
        processor_limit: seconds of processor time that a task may use from one report to the next; None for no limit.
            Unlike `time_limit` it does not depend on what else the machine does.
        one_thread: whether each computes with one thread: where there are several, they are the parallelism.
        gives_way: whether they take only the time that this process leaves on the processors: a network whose threads
            wait for each other loses more than they do.
        grace: seconds that a process gets at the end to finish its task, whose result nobody awaits.
        setup: called once in each process.
    """

    time_limit: float | None = None
    processor_limit: float | None = None
    one_thread: bool = True
    gives_way: bool = False
    grace: float = 0.0
    setup: Callable[[], None] | None = None


def start(work: Work[Any], conditions: Conditions) -> tuple[Any, Connection]:
    """Start a process that waits for tasks; return it, and our end of the connection to it."""
    context = multiprocessing.get_context("spawn")  # nothing of this process's threads, locks and files goes along
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, work, conditions, decision()), daemon=True)
    threads = dict.fromkeys(_ONE_THREAD, "1") if conditions.one_thread else {}
    with _inherited({**_SAFE_PATH, **threads}), _interrupts_held(), _script_left_alone():
        process.start()
    theirs.close()
    return process, ours


@contextmanager
def _script_left_alone() -> Iterator[None]:
    """Keep a process that is started here from running the script that starts it anew.

    `multiprocessing` runs the main file again in every new process, for functions that are defined there; ours are
    not, and a script without `if __name__ == "__main__"` would start processes without end.
    """
    main = sys.modules["__main__"]
    hidden = {name: vars(main).pop(name) for name in ("__file__", "__spec__") if name in vars(main)}
    main.__spec__ = None
    try:
        yield
    finally:
        vars(main).update({"__spec__": None} | hidden)


def ending(code: int | None) -> str:
    """Say how a process ended: by a signal, or with a status."""
    if code is not None and code < 0:
        return signal.Signals(-code).name
    return f"exit status {code}"


@contextmanager
def _inherited(variables: Mapping[str, str]) -> Iterator[None]:
    """Start processes with these environment variables: one thread each keeps sums equal however many there are."""
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
    """Start processes that leave Ctrl-C to this one: what is held back here never reaches what is started meanwhile."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(connection: Connection, work: Work[Any], conditions: Conditions, consented: Any) -> None:
    """Do task after task until the other end hangs up; runs in the process of a worker."""
    inherit(consented)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    os.nice(_GIVING_WAY if conditions.gives_way else 0)
    if conditions.setup is not None:
        conditions.setup()
    longest = 0.0 if conditions.time_limit is None else conditions.time_limit + _ORPHAN_SECONDS

    def begin() -> None:
        signal.setitimer(signal.ITIMER_REAL, longest)
        limit_processor_time(conditions.processor_limit or 0.0)

    def say(kind: int, value: Any = None) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        limit_processor_time(0.0)
        try:
            connection.send((kind, value))
        except (BrokenPipeError, ConnectionResetError):
            os._exit(1)  # nobody waits any more, and nobody on the way may take this for a failure of the task
        if kind == REPORT:
            begin()

    say(READY)
    with suppress(EOFError, ConnectionResetError):
        while True:
            task = connection.recv()
            begin()
            try:
                result = work(task, lambda value: say(REPORT, value))
            except Exception as error:
                say(RAISED, error)
            else:
                say(DONE, result)
