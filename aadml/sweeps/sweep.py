"""Many runs, over processes: resumable after a kill, and one that fails does not stop the rest.

Each process works off one run after the other, because starting one is expensive. What a run is lies in its folder
alone: finished runs are kept, interrupted ones are continued, failed ones are tried again by the next call.
"""

import fcntl
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from aadml.configuration.config import Config
from aadml.data.reading import SYNTHETIC
from aadml.runs.loading import read_config
from aadml.runs.manifest import CONFIG, is_run, read_manifest
from aadml.sweeps.job import Job, is_done, work_off
from feature_extraction.ground.atomic import write_text
from feature_extraction.ground.errors import InputError
from feature_extraction.ground.worker_pool import Finished, Lost, WorkerPool
from feature_extraction.ground.worker_process import Conditions
from feature_extraction.network_run import chosen_device

RUNS = "runs"
DATA = "data.json"
OWN = (DATA, f"*/{DATA}", RUNS, f"*/{RUNS}", "shard-*-of-*", "sets.csv", "stage-*.csv")
"""What tells the folder of a sweep, or of a reproduction."""

WRITTEN = (".html", ".csv", ".md", ".tex", ".svg", ".json")
"""The kinds of files that pages and tables are written to."""


@dataclass(frozen=True)
class Outcome:
    """What became of a run.

    Attributes:
        job: the run.
        reason: why it failed; empty where it is finished.
        kept: whether it was finished before.
    """

    job: Job
    reason: str = ""
    kept: bool = False


def sweep(
    jobs: Sequence[Job],
    *,
    workers: int | None = None,
    on_outcome: Callable[[Outcome], None] | None = None,
    on_epoch: Callable[[Job, int, int], None] | None = None,
) -> list[Outcome]:
    """Work off all jobs.

    Args:
        jobs: their folders are theirs alone.
        workers: how many processes, each with one thread where there are several; 0 works in this process; None takes
            one a processor, or one where the device is a GPU.
        on_outcome: called as soon as a run is finished, failed, or found to be finished.
        on_epoch: called with (job, epochs done, epochs) after every epoch.

    Returns:
        One outcome a job, in the order of the jobs.

    Raises:
        InputError: a folder holds a run of another config.
    """
    outcomes: dict[str, Outcome] = {}

    def settle(outcome: Outcome) -> None:
        outcomes[str(outcome.job.folder)] = outcome
        if on_outcome:
            on_outcome(outcome)

    for job in jobs:
        _check_same_config(job)
    waiting = [job for job in jobs if not is_done(job)]
    for job in jobs:
        if is_done(job):
            settle(Outcome(job, kept=True))
    for job, reason in _worked_off(waiting, worker_count(workers, waiting), on_epoch):
        settle(Outcome(job, reason))
    return [outcomes[str(job.folder)] for job in jobs]


@contextmanager
def sole_owner(folder: Path) -> Iterator[None]:
    """Keep other processes from working in a folder as long as this one does; one that stays empty is not left behind.

    Raises:
        InputError: another one is at it, or the folder cannot be made.
    """
    absent = [place for place in (folder, *folder.parents) if not place.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise InputError(f"{folder}: cannot be made ({error.strerror}); choose another --output") from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise InputError(f"{folder}: another process works there; wait for it, or choose another --output") from None
    finally:
        os.close(handle)
        with suppress(OSError):  # not empty
            for place in absent:
                place.rmdir()


def refuse_foreign(folder: Path) -> None:
    """Refuse a folder of something else: pages and tables have plain names, and could replace files of other people.

    Raises:
        InputError: it holds files of the kinds that are written, and nothing of a sweep.
    """
    names = sorted(place.name for place in folder.iterdir()) if folder.is_dir() else []
    held = [name for name in names if Path(name).suffix in WRITTEN]
    if held and not any(one for mark in OWN for one in folder.glob(mark)):
        some = ", ".join(held[:3]) + (" ..." if len(held) > 3 else "")
        raise InputError(f"{folder}: holds other files ({some}); choose another --output")


def check_same_data(folder: Path, data: str) -> None:
    """Refuse to mix runs on different data in one folder; one in which nothing was begun is free for any data.

    Raises:
        InputError: the file was changed since the first run, or is another, or is not there.
    """
    path = folder / DATA
    if not data.startswith(SYNTHETIC) and not Path(data).exists():
        raise InputError(f"{data}: no such file or folder")
    own = {"data": data, "sha256": _fingerprint(Path(data))}
    if not path.is_file() or not any(place.is_dir() for place in folder.iterdir()):
        folder.mkdir(parents=True, exist_ok=True)
        write_text(path, json.dumps(own, indent=2) + "\n")
        return
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
        same = known["sha256"] == own["sha256"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: damaged ({error}); choose another --output") from error
    if not same:
        raise InputError(f"{folder}: holds runs on {known['data']} as it was; {data} differs; choose another --output")


def _worked_off(
    jobs: Sequence[Job], workers: int, on_epoch: Callable[[Job, int, int], None] | None
) -> Iterator[tuple[Job, str]]:
    if not workers:
        for job in jobs:
            yield job, work_off(job, partial(on_epoch, job) if on_epoch else None)
        return
    with WorkerPool(_in_process, workers, conditions(workers)) as pool:
        for event in pool.work_off(jobs):
            if isinstance(event, Finished):
                yield event.task, str(event.value)
            elif isinstance(event, Lost):
                memory = " (out of memory?)" if event.ending == "SIGKILL" else ""
                yield event.task, f"its process ended with {event.ending}{memory}"
            elif on_epoch:
                on_epoch(event.task, *event.value)


def _in_process(job: Job, report: Callable[[tuple[int, int]], None]) -> str:
    return work_off(job, lambda done, total: report((done, total)))


def conditions(workers: int) -> Conditions:
    """Give each of several processes one thread."""
    return Conditions(one_thread=workers > 1, setup=_use_one_thread if workers > 1 else None)


def _use_one_thread() -> None:
    import torch

    torch.set_num_threads(1)


def worker_count(workers: int | None, jobs: Sequence[Job]) -> int:
    """Say how many processes work off jobs; see `sweep`."""
    if workers is None:
        on_gpu = any(chosen_device(job.config.common.device, "config").type != "cpu" for job in jobs[:1])
        workers = 1 if on_gpu else len(os.sched_getaffinity(0))
    return min(workers, len(jobs)) if jobs else 0


def _check_same_config(job: Job) -> None:
    if not is_run(job.folder) or CONFIG not in read_manifest(job.folder).files:
        return
    there = read_config(job.folder)
    wanted = job.config.trained_in(there.training.precision)
    if there.yaml() != wanted.yaml():
        changed = _first_difference(there, wanted)
        raise InputError(f"{job.folder}: holds a run of another config ({changed}); choose another --output")


def _first_difference(there: Config, wanted: Config) -> str:
    for key in {**there.values, **wanted.values}:
        if there.values.get(key) != wanted.values.get(key):
            return f"{key}: {there.values.get(key)} there, {wanted.values.get(key)} wanted"
    return "written otherwise"


def _fingerprint(path: Path) -> str:
    """Hash a file, or the names and sizes of the files of a folder."""
    digest = hashlib.sha256()
    if path.is_file():
        with path.open("rb") as file:
            while block := file.read(1 << 22):
                digest.update(block)
    else:
        for inner in sorted(path.rglob("*")):
            digest.update(f"{inner.relative_to(path)} {inner.stat().st_size}\n".encode())
    return digest.hexdigest()


def failures(outcomes: Sequence[Outcome]) -> list[tuple[str, str]]:
    """List the failed runs with their reasons; the folder of each holds the rest of the story."""
    return [(outcome.job.folder.name, outcome.reason) for outcome in outcomes if outcome.reason]
