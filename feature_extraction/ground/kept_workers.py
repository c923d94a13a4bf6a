"""Worker processes that a server keeps between tasks, since starting a process takes longer than most tasks."""

import pickle
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import chain
from threading import Lock
from typing import Any

from aadml.feature_extraction.ground.worker_pool import WorkerPool
from aadml.feature_extraction.ground.worker_process import Conditions, Work

_lock = Lock()
_kept: list[dict[bytes, list[WorkerPool[Any]]]] = []  # idle pools of each open `keep_workers`


@contextmanager
def keep_workers() -> Iterator[None]:
    """Reuse, within the context, the processes of an ended pool for a later pool with equal arguments."""
    idle: dict[bytes, list[WorkerPool[Any]]] = {}
    _kept.append(idle)
    try:
        yield
    finally:
        with _lock:
            _kept.remove(idle)
        for pool in chain(*idle.values()):
            pool.__exit__(None, None, None)


@contextmanager
def worker_pool(work: Work[Any], workers: int, conditions: Conditions | None = None) -> Iterator[WorkerPool[Any]]:
    """Return a context with a pool. Within `keep_workers`, a kept pool with equal arguments is reused.

    `WorkerPool` describes the arguments.
    """
    key = pickle.dumps((work, workers, conditions))
    with _lock:
        equal = _kept[-1].get(key) if _kept else None
        pool = equal.pop() if equal else WorkerPool(work, workers, conditions)
    if not pool.is_alive():  # a process died meanwhile
        pool.__exit__(None, None, None)
        pool = WorkerPool(work, workers, conditions)
    with ExitStack() as stack:
        stack.push(pool)  # ends with the context after an error, as a worker may still be busy
        yield pool
        with _lock:
            if _kept:
                _kept[-1].setdefault(key, []).append(pool)
                stack.pop_all()
