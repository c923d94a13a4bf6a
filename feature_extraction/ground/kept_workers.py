"""Worker processes that a server keeps between tasks, since starting a process takes longer than most tasks."""

import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any

from aadml.feature_extraction.ground.worker_pool import WorkerPool
from aadml.feature_extraction.ground.worker_process import Conditions, Work

_lock = Lock()
_kept: list[dict[bytes, list[WorkerPool[Any]]]] = []  # idle pools of each open `keep_workers`


@contextmanager
def keep_workers() -> Iterator[None]:
    """Reuse, within the context, the processes of an ended pool for a later pool with equal arguments.

    The argument `watch` of the two pools may differ (see `worker_pool`).
    """
    idle: dict[bytes, list[WorkerPool[Any]]] = {}
    _kept.append(idle)
    try:
        yield
    finally:
        with _lock:
            _kept.remove(idle)
        for pool in (pool for equal in idle.values() for pool in equal):
            pool.__exit__(None, None, None)


@contextmanager
def worker_pool(
    work: Work[Any],
    workers: int,
    conditions: Conditions | None = None,
    watch: Callable[[Sequence[float]], None] | None = None,
) -> Iterator[WorkerPool[Any]]:
    """Return a context with a pool. Within `keep_workers`, a kept pool with equal arguments is reused.

    `WorkerPool` describes the arguments. A reused pool calls the `watch` that it was opened with.
    """
    if not _kept:
        with WorkerPool(work, workers, conditions, watch) as pool:
            yield pool
        return
    key = pickle.dumps((work, workers, conditions))
    with _lock:
        equal = _kept[-1].get(key) if _kept else None
        idle = equal.pop() if equal else None
    if idle is not None and not idle.is_alive():  # a process died meanwhile
        idle.__exit__(None, None, None)
        idle = None
    pool = idle or WorkerPool(work, workers, conditions, watch)
    try:
        yield pool
    except BaseException:
        pool.__exit__(None, None, None)  # a worker may still be busy
        raise
    with _lock:
        is_keeping = bool(_kept)
        if is_keeping:
            _kept[-1].setdefault(key, []).append(pool)
    if not is_keeping:
        pool.__exit__(None, None, None)
