"""Decoding on Ray: one actor per processor of the cluster, each with its own decoding process.

As on one machine, a file that crashes or hangs the decoder fails only its own clip. The process dies, but the actor
continues. When an actor is lost with its machine, another actor decodes the clip.
"""

import os
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

from aadml.feature_extraction.engines.decoding_workers import DecodedPart, DecodingSettings, Task, decoded_by, decoders
from aadml.feature_extraction.ground.errors import InputError, cause
from aadml.feature_extraction.ground.import_paths import optional
from aadml.feature_extraction.manifest import is_text

_SILENCE_SECONDS = 600.0  # longest time without a result, beyond the time limit of a clip
_TRIES = 3  # on a busy machine, the start may exceed the half minute that Ray allows
_LOSSES = 3  # a clip fails after this number of lost actors
_SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",  # no usage reports
    "RAY_agent_register_timeout_ms": "120000",  # for the start on a busy machine
}


class DecodingActor:
    """Ray actor with a pool of one decoding process, which decodes one clip at a time."""

    def __init__(self, settings: DecodingSettings) -> None:
        self._open = decoders(settings, 1)
        self._pool = self._open.__enter__()

    def decode(self, task: Task) -> list[DecodedPart]:
        """Return the parts of a clip. If the process crashes, the clip is decoded once more in a new process."""
        suspects: list[Task] = []
        decoded = [*decoded_by(self._pool, iter([task]), suspects)]
        ((_, parts),) = decoded or decoded_by(self._pool, iter(suspects))
        return parts


def decode(
    tasks: Iterator[Task], settings: DecodingSettings, /, *, clips: int, workers: int | None, address: str = ""
) -> Generator[tuple[Task, list[DecodedPart]]]:
    """Decode clips on Ray; media must have the same paths on all machines of the cluster.

    Args:
        tasks: see `Engine`.
        settings: see `Engine`.
        clips: see `Engine`.
        workers: number of actors; None for one actor per processor of the cluster.
        address: address of a running cluster. If the address is empty, RAY_ADDRESS is used. If RAY_ADDRESS is not set
            either, Ray is started on this machine. An existing connection of this process takes precedence.

    Yields:
        Each task with its parts, in the order of completion.

    Raises:
        InputError: Ray is not installed or cannot be started, or the cluster does not exist or returns no results.
    """
    with _connected(address, workers) as ray:
        count = min(workers or max(1, int(ray.cluster_resources().get("CPU", 1))), clips)
        kind = ray.remote(num_cpus=1)(DecodingActor)
        patience = _SILENCE_SECONDS + 30 * settings.time_limit
        yield from _decoded(ray, tasks, lambda: kind.remote(settings), count, patience)


def _decoded(
    ray: Any, tasks: Iterator[Task], start: Callable[[], Any], count: int, patience: float
) -> Generator[tuple[Task, list[DecodedPart]]]:
    """Decode all clips with up to `count` actors."""
    running: dict[Any, tuple[Any, Task]] = {}
    free: list[Any] = []
    lost: list[Task] = []
    losses: Counter[int] = Counter()
    while True:
        while len(running) < count and (task := lost.pop() if lost else next(tasks, None)) is not None:
            actor = free.pop() if free else start()
            media = {m: value if is_text(m) else str(Path(value).absolute()) for m, value in task.media.items()}
            running[actor.decode.remote(replace(task, media=media))] = (actor, task)
        if not running:
            return
        done, _ = ray.wait(list(running), timeout=patience)
        if not done:
            raise InputError(
                f"engine ray: the cluster returned no result in {patience:.0f} s; "
                "check that the cluster has free processors"
            )
        for result in done:
            actor, task = running.pop(result)
            try:
                parts = ray.get(result)
                free.append(actor)
            except ray.exceptions.RayActorError:
                losses[task.number] += 1
                if losses[task.number] < _LOSSES:
                    lost.append(task)
                    continue
                detail = f"{_LOSSES} processes of Ray were lost while they decoded the clip"
                parts = [DecodedPart(next(iter(task.media)), reason="crashed", detail=detail)]
            yield task, parts


def package() -> Any:
    """Import Ray.

    Raises:
        InputError: Ray is not installed.
    """
    return optional("ray", "engine ray", "aadml[ray]")


@contextmanager
def _connected(address: str, workers: int | None) -> Iterator[Any]:
    """Yield the module of Ray, connected to a cluster or started on this machine.

    An existing connection of this process is used and kept. A new connection is closed at the end.
    """
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    ray = package()
    if ray.is_initialized():
        yield ray
        return
    where = address or os.environ.get("RAY_ADDRESS", "local")
    is_new = where == "local"
    paths = {"env_vars": {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}}
    for left in reversed(range(_TRIES if is_new else 1)):
        try:
            ray.init(
                address=where, log_to_driver=False, logging_level="ERROR", runtime_env=paths,
                num_cpus=workers if is_new else None, include_dashboard=False if is_new else None,
            )  # fmt: skip
            break
        except Exception as error:  # Ray has no exception class for this
            ray.shutdown()
            if not left:
                problem = "Ray cannot be started on this machine" if is_new else f"Ray cannot connect to {where}"
                other = "local" if is_new else "unset RAY_ADDRESS and pass ray to start Ray on this machine"
                raise InputError(
                    f"engine ray: {problem} ({cause(error)}); pass ray:ADDRESS of a running cluster, or {other}"
                ) from error
    try:
        with redirect_stdout(sys.stderr):  # Ray prints messages about lost processes
            yield ray
    finally:
        ray.shutdown()
