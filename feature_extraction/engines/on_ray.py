"""Decoding on Ray: an actor for each processor of the cluster, each with a decoding process of its own.

A file that takes its decoder down, or never ends, costs one clip, as on one machine: the process dies, not the actor.
An actor that is lost with its machine costs nothing: another one takes the clip that it had.
"""

import os
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from aadml.feature_extraction.engines.decoding_workers import DecodedPart, Task, Wanted, decoded_by, decoders
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.worker_pool import WorkerPool
from aadml.feature_extraction.manifest import is_text
from aadml.feature_extraction.media import Limits

_SILENCE_SECONDS = 600.0  # beyond what a clip may take: the cluster gives us nothing
_TRIES = 3  # a busy machine may not start Ray within the half minute that Ray allows
_LOSSES = 3  # actors that may be lost over one clip before it is given up


_SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing is reported to anybody
    "RAY_agent_register_timeout_ms": "120000",  # a busy machine takes a minute to start it
}


class DecodingActor:
    """What runs in an actor: one decoding process, and a clip at a time for it.

    Args:
        pool: makes the pool of that process.
    """

    def __init__(self, pool: Callable[[], WorkerPool[Task]]) -> None:
        self._pool = pool().__enter__()

    def decode(self, task: Task) -> list[DecodedPart]:
        """Decode a clip; where the process died, once more in the fresh one that replaced it."""
        suspects: list[Task] = []
        decoded = [*decoded_by(self._pool, iter([task]), suspects)]
        ((_, parts),) = decoded or decoded_by(self._pool, iter(suspects))
        return parts


def decode(
    tasks: Iterator[Task],
    wanted: Mapping[str, Wanted],
    /,
    *,
    clips: int,
    workers: int | None,
    time_limit: float,
    limits: Limits,
    gives_way: bool,
    address: str = "",
) -> Generator[tuple[Task, list[DecodedPart]]]:
    """Decode on Ray; media must be found under the same paths on all machines of a cluster.

    Args:
        tasks: as of `Engine`, and so those between.
        wanted: see there.
        clips: see there.
        workers: actors; None: one for each processor of the cluster.
        time_limit: see there.
        limits: see there.
        gives_way: see there.
        address: of a cluster that runs; empty: that of RAY_ADDRESS, or Ray on this machine for this job alone.

    Raises:
        InputError: Ray is not installed, there is no cluster at the address, or it gives no processors.
    """
    pool = partial(decoders, dict(wanted), workers=1, time_limit=time_limit, limits=limits, gives_way=gives_way)
    with _connected(address, workers) as ray:
        count = min(workers or max(1, int(ray.cluster_resources().get("CPU", 1))), clips)
        kind = ray.remote(num_cpus=1)(DecodingActor)
        yield from _decoded(ray, tasks, lambda: kind.remote(pool), count, _SILENCE_SECONDS + 30 * time_limit)


def _decoded(
    ray: Any, tasks: Iterator[Task], start: Callable[[], Any], count: int, patience: float
) -> Generator[tuple[Task, list[DecodedPart]]]:
    """Keep up to `count` actors busy until all clips are decoded."""
    running: dict[Any, tuple[Any, Task]] = {}
    free: list[Any] = []
    losses: Counter[int] = Counter()
    more = True
    while more or running:
        while more and len(running) < count:
            task = next(tasks, None)
            more = task is not None
            if task is not None:
                actor = free.pop() if free else start()
                running[actor.decode.remote(_from_anywhere(task))] = (actor, task)
        done, _ = ray.wait(list(running), timeout=patience) if running else ([], [])
        if running and not done:
            raise InputError(f"engine ray: nothing came back in {patience:.0f} s; has the cluster processors to give?")
        for one in done:
            actor, task = running.pop(one)
            try:
                parts = ray.get(one)
                free.append(actor)
            except ray.exceptions.RayActorError:
                losses[task.number] += 1
                if losses[task.number] < _LOSSES:
                    actor = start()
                    running[actor.decode.remote(_from_anywhere(task))] = (actor, task)
                    continue
                detail = f"{_LOSSES} processes of Ray were lost while they had it"
                parts = [DecodedPart(next(iter(task.media)), reason="crashed", detail=detail)]
            yield task, parts


def _from_anywhere(task: Task) -> Task:
    """Name the media of a clip so that they are found from any folder."""
    media = {m: value if is_text(m) else str(Path(value).absolute()) for m, value in task.media.items()}
    return replace(task, media=media)


def package() -> Any:
    """Import Ray.

    Raises:
        InputError: it is not installed.
    """
    try:
        return import_module("ray")
    except ImportError as error:
        raise InputError("engine ray: the package ray is not installed: pip install 'aadml[ray]'") from error


@contextmanager
def _connected(address: str, workers: int | None) -> Iterator[Any]:
    """Connect to a cluster, or start Ray on this machine; what was started here ends here."""
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    ray = package()
    if ray.is_initialized():
        yield ray
        return
    where = address or os.environ.get("RAY_ADDRESS", "local")
    here: dict[str, Any] = {"num_cpus": workers, "include_dashboard": False} if where == "local" else {}
    paths = {"env_vars": {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}}
    for left in reversed(range(_TRIES if here else 1)):
        try:
            ray.init(address=where, log_to_driver=False, logging_level="ERROR", runtime_env=paths, **here)
            break
        except Exception as error:  # Ray raises no kind of its own here
            ray.shutdown()
            reason = " ".join(str(error).split())[:200]
            if not left:
                raise InputError(
                    f"engine ray: nothing at {where} ({reason}); give ray:ADDRESS, or ray alone"
                ) from error
    try:
        with redirect_stdout(sys.stderr):  # where Ray writes what it remarks of processes that were lost
            yield ray
    finally:
        ray.shutdown()
